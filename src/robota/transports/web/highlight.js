// Code in colours, by families of languages.

import {el} from "./dom.js"

const slashes = {line: "//", block: true}
const FAMILIES = {
	python: {line: "#", triple: true},
	js: {...slashes, tick: true},
	c: slashes,
	rust: {...slashes, quote: '"'},
	shell: {line: "#"},
	sql: {line: "--", block: true},
	css: {block: true},
	yaml: {line: "#", key: true},
	json: {key: true},
	markup: {},
	diff: {}
}
const NAMES = {
	python: "py pyi python3 rb ruby",
	js: "javascript jsx ts tsx typescript mjs cjs go golang",
	c: "cpp c++ h hpp cc java cs csharp kotlin kt swift scala dart php",
	rust: "rs",
	shell: "sh bash zsh console dockerfile makefile",
	yaml: "yml toml ini cfg",
	json: "jsonc jsonl",
	markup: "html xml svg vue",
	css: "scss less",
	diff: "patch"
}
const ALIASES = new Map(Object.entries(NAMES).flatMap(([name, others]) => others.split(" ").map(other => [other, name])))
// One list for all: a word that is none in its language is rarely written there.
const WORDS = new Set(
	"and as assert async await begin bool break case catch char class const continue def default defer del delete do done double echo elif else end enum except exit export extends false fi final finally float fn for from func function go if implements import in int interface is lambda let long loop map match mod mut new nil None not null or package pass private protected pub public raise range return self Self static struct super switch this throw true True False try type typeof undefined use var void where while with yield select insert into values update set table join on group by order limit".split(" ")
)
const made = new Map([["markup", /(?<c><!--[^]*?(?:-->|$))|(?<k><\/?[\w:-]+|\/?>)|(?<t>\b[\w:-]+(?==["']))|(?<s>"[^"\n]*"|'[^'\n]*')/g], ["diff", /(?<ins>^\+.*\n?)|(?<del>^-.*\n?)|(?<c>^@@.*)/gm]])

function finderOf({block, line, triple, quote = `"'`, tick, key}) {
	const strings = [...quote].map(mark => `${mark}(?:[^${mark}\\\\\\n]|\\\\.){0,2000}${mark}?`)
	if (tick) strings.push("`(?:[^`\\\\]|\\\\[^])*`?")
	if (triple) strings.unshift('[rbf]{0,2}(?:"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$))')
	const parts = [block && "(?<c>/\\*[^]*?(?:\\*/|$))", line && `(?<r>${line}[^\\n]*)`, key && '(?<t>^[ \\t]*(?:- )?[\\w."-]+(?=\\s*[:=]))', `(?<s>${strings.join("|")})`, "(?<n>\\b\\d[\\w.]*)", "(?<word>[A-Za-z_$@][\\w$]*)(?<call>(?=\\s?\\())?"]
	return new RegExp(parts.filter(Boolean).join("|"), "gm")
}

function kindOf({word, call, ...kinds}) {
	if (word === undefined) return Object.keys(kinds).find(kind => kinds[kind] !== undefined).replace("r", "c")
	if (WORDS.has(word) || WORDS.has(word.toLowerCase()) && word === word.toUpperCase()) return "k"
	if (word[0] === "@" || call !== undefined) return "f"
	return /^[A-Z][a-z0-9]/.test(word) ? "t" : ""
}

export function language(name) {
	const key = String(name || "").toLowerCase().split(".").pop()
	return FAMILIES[key] ? key : ALIASES.get(key) || ""
}

export function highlight(text, name) {
	const key = language(name)
	if (!key) return [text]
	if (!made.has(key)) made.set(key, finderOf(FAMILIES[key]))
	const nodes = []
	let at = 0
	for (const found of text.matchAll(made.get(key))) {
		const kind = kindOf(found.groups)
		if (!kind) continue
		nodes.push(text.slice(at, found.index), el(`span.${kind}`, found[0]))
		at = found.index + found[0].length
	}
	return [...nodes, text.slice(at)]
}
