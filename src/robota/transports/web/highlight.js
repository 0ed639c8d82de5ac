// Code in colours: one small tokenizer, told what comments, strings and keywords look like in a family of languages.

import { el } from "./dom.js";

const C = "if else for while do switch case default break continue return struct enum static const void int long short char float double unsigned sizeof class public private protected virtual override template typename namespace using new delete this null nullptr true false try catch throw auto bool var let interface abstract extends implements package import super fun val when func";
const JS = "const let var function return if else for while do switch case default break continue new delete typeof instanceof in of class extends super this import export from as async await yield try catch finally throw null undefined true false void static interface type enum readonly";
const slashes = { line: "//", block: true };
const FAMILIES = {
	python: { line: "#", triple: true, words: "def class return if elif else for while in not and or is None True False import from as with try except finally raise lambda yield async await pass break continue global nonlocal assert del match case self" },
	js: { ...slashes, tick: true, words: JS },
	c: { ...slashes, words: C },
	go: { ...slashes, tick: true, words: "break case chan const continue default defer else for func go if import interface map package range return select struct switch type var nil true false string int error bool byte any" },
	rust: { ...slashes, quote: '"', words: "as async await break const continue crate dyn else enum false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while Some None Ok Err" },
	shell: { line: "#", words: "if then else elif fi for while do done case esac in function return local export set exit cd echo source sudo" },
	ruby: { line: "#", words: "def end class module if elsif else unless while for in do begin rescue ensure return yield self nil true false and or not require raise case when" },
	sql: { line: "--", block: true, any: true, words: "select from where insert into values update set delete create table alter drop index view join left right inner outer on as and or not null is in like between group by order having limit union all distinct primary key references default unique exists case when then else end with returning begin commit" },
	css: { block: true },
	yaml: { line: "#", key: true, words: "true false null" },
	json: { key: true, words: "true false null" },
	markup: {},
	diff: {},
};
const NAMES = {
	python: "py pyi python3", js: "javascript jsx ts tsx typescript mjs cjs", c: "cpp c++ h hpp cc java cs csharp kotlin kt swift scala dart php",
	go: "golang", rust: "rs", shell: "sh bash zsh console dockerfile makefile", ruby: "rb", yaml: "yml toml ini cfg", json: "jsonc jsonl", markup: "html xml svg vue", css: "scss less", diff: "patch",
};
const ALIASES = new Map(Object.entries(NAMES).flatMap(([name, others]) => others.split(" ").map((other) => [other, name])));
const made = new Map([
	["markup", { finder: /(?<c><!--[^]*?(?:-->|$))|(?<k><\/?[\w:-]+|\/?>)|(?<t>\b[\w:-]+(?==["']))|(?<s>"[^"\n]*"|'[^'\n]*')/g }],
	["diff", { finder: /(?<ins>^\+.*\n?)|(?<del>^-.*\n?)|(?<c>^@@.*)/gm }],
]);

function rulesOf({ block, line, triple, quote = `"'`, tick, key, words = "", any }) {
	const strings = [...quote].map((mark) => `${mark}(?:[^${mark}\\\\\\n]|\\\\.){0,2000}${mark}?`);
	if (tick) strings.push("`(?:[^`\\\\]|\\\\[^])*`?");
	if (triple) strings.unshift('[rbf]{0,2}(?:"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$))');
	const parts = [
		block && "(?<c>/\\*[^]*?(?:\\*/|$))",
		line && `(?<r>${line}[^\\n]*)`,
		key && '(?<t>^[ \\t]*(?:- )?[\\w."-]+(?=\\s*[:=]))',
		`(?<s>${strings.join("|")})`,
		"(?<n>\\b\\d[\\w.]*)",
		"(?<word>[A-Za-z_$@][\\w$]*)(?<call>(?=\\s?\\())?",
	];
	return { finder: new RegExp(parts.filter(Boolean).join("|"), "gm"), words: new Set(words.split(" ")), any };
}

function kindOf({ word, call, ...kinds }, rules) {
	if (word === undefined) return Object.keys(kinds).find((kind) => kinds[kind] !== undefined).replace("r", "c");
	if (rules.words.has(rules.any ? word.toLowerCase() : word)) return "k";
	if (word[0] === "@" || call !== undefined) return "f";
	return /^[A-Z][a-z0-9]/.test(word) ? "t" : "";
}

export function language(name) {
	const key = String(name || "").toLowerCase().split(".").pop();
	return FAMILIES[key] ? key : ALIASES.get(key) || "";
}

export function highlight(text, name) {
	const key = language(name);
	if (!key) return [text];
	if (!made.has(key)) made.set(key, rulesOf(FAMILIES[key]));
	const rules = made.get(key);
	const nodes = [];
	let at = 0;
	for (const found of text.matchAll(rules.finder)) {
		const kind = kindOf(found.groups, rules);
		if (!kind) continue;
		nodes.push(text.slice(at, found.index), el(`span.${kind}`, found[0]));
		at = found.index + found[0].length;
	}
	return [...nodes, text.slice(at)];
}
