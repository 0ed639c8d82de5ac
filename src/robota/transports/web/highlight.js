// Code in colours: one small tokenizer, told what comments, strings and keywords look like in a family of languages.

import { el } from "./dom.js";

const C = "if else for while do switch case default break continue return struct enum union typedef static const void int long short char float double unsigned signed sizeof goto extern volatile inline";
const JS = "const let var function return if else for while do switch case default break continue new delete typeof instanceof in of class extends super this import export from as async await yield try catch finally throw null undefined true false void static get set interface type enum implements readonly public private protected namespace declare abstract keyof";
const FAMILIES = {
  python: { line: "#", triple: true, words: "def class return if elif else for while in not and or is None True False import from as with try except finally raise lambda yield async await pass break continue global nonlocal assert del match case self type" },
  js: { line: "//", block: true, tick: true, words: JS },
  c: { line: "//", block: true, words: `${C} class public private protected virtual override template typename namespace using new delete this nullptr true false try catch throw auto bool constexpr operator friend final null string var let interface abstract extends implements package import instanceof super synchronized boolean byte internal foreach is as async await out ref params record fun val when object companion data sealed open guard func protocol extension defer` },
  go: { line: "//", block: true, tick: true, words: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota string int error bool byte rune any make len append" },
  rust: { line: "//", block: true, quote: '"', words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while Some None Ok Err" },
  shell: { line: "#", words: "if then else elif fi for while until do done case esac in function return local export readonly set unset exit cd echo source trap shift eval exec test sudo" },
  ruby: { line: "#", words: "def end class module if elsif else unless while until for in do begin rescue ensure return yield self nil true false and or not require include attr_reader attr_accessor raise then case when lambda proc puts" },
  php: { line: "//", block: true, words: `${JS} echo foreach endif endforeach elseif use require require_once fn match global isset empty array string int` },
  sql: { line: "--", block: true, any: true, words: "select from where insert into values update set delete create table alter drop index view join left right inner outer full on as and or not null is in like between group by order having limit offset union all distinct primary key foreign references default constraint unique exists case when then else end with returning begin commit rollback count sum" },
  css: { block: true, words: "important" },
  yaml: { line: "#", key: true, words: "true false null yes no on off" },
  toml: { line: "#", key: true, words: "true false" },
  json: { key: true, words: "true false null" },
  markup: { markup: true },
  diff: { diff: true },
};
const NAMES = {
  py: "python", python3: "python", pyi: "python", javascript: "js", jsx: "js", ts: "js", tsx: "js", typescript: "js", mjs: "js", cjs: "js",
  cpp: "c", "c++": "c", h: "c", hpp: "c", cc: "c", java: "c", cs: "c", csharp: "c", kotlin: "c", kt: "c", swift: "c", scala: "c", dart: "c",
  golang: "go", rs: "rust", sh: "shell", bash: "shell", zsh: "shell", console: "shell", dockerfile: "shell", makefile: "shell", fish: "shell",
  rb: "ruby", yml: "yaml", ini: "toml", cfg: "toml", jsonc: "json", json5: "json", jsonl: "json", html: "markup", xml: "markup", svg: "markup",
  vue: "markup", scss: "css", less: "css", patch: "diff",
};
const made = new Map();

const escape = (text) => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");

function build(family) {
  const parts = [];
  if (family.block) parts.push("(?<comment>/\\*[^]*?(?:\\*/|$))");
  if (family.line) parts.push(`(?<remark>${escape(family.line)}[^\\n]*)`);
  if (family.triple) parts.push('(?<long>[rbfRBF]{0,2}(?:"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$)))');
  const quotes = family.quote || `"'`;
  const strings = [...quotes].map((mark) => `${mark}(?:[^${mark}\\\\\\n]|\\\\.){0,2000}${mark}?`);
  if (family.tick) strings.push("`(?:[^`\\\\]|\\\\[^])*`?");
  parts.push(`(?<string>(?:${strings.join("|")})${family.key ? "(?<key>\\s*:)?" : ""})`);
  if (family.key) parts.push("(?<name>^[ \\t]*(?:- )?[\\w.\"-]+(?=\\s*[:=]))");
  parts.push("(?<number>\\b\\d[\\w.]*)", "(?<word>[A-Za-z_$@][\\w$]*)(?<call>(?=\\s?\\())?");
  return { finder: new RegExp(parts.join("|"), "gm"), words: new Set((family.words || "").split(" ")), any: family.any };
}

function kindOf(groups, rules) {
  if (groups.comment || groups.remark) return "c";
  if (groups.key !== undefined || groups.name) return "t";
  if (groups.string || groups.long) return "s";
  if (groups.number) return "n";
  if (rules.words.has(rules.any ? groups.word.toLowerCase() : groups.word)) return "k";
  if (groups.word[0] === "@") return "f";
  if (groups.call !== undefined) return "f";
  return /^[A-Z][a-z0-9]/.test(groups.word) ? "t" : "";
}

const MARKUP = { finder: /(?<c><!--[^]*?(?:-->|$))|(?<k><\/?[\w:-]+|\/?>)|(?<t>\b[\w:-]+(?==["']))|(?<s>"[^"\n]*"|'[^'\n]*')/g };

function markup(groups) {
  return ["c", "k", "t", "s"].find((kind) => groups[kind] !== undefined);
}

function diffLines(text) {
  return text.split(/(?<=\n)/).map((line) => {
    const kind = line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : line.startsWith("@@") ? "c" : "";
    return kind ? el("span", { class: kind }, line) : line;
  });
}

export function language(name) {
  const key = String(name || "").toLowerCase().split(".").pop();
  return FAMILIES[key] ? key : NAMES[key] || "";
}

export function highlight(text, name) {
  const key = language(name);
  if (!key) return [text];
  if (FAMILIES[key].diff) return diffLines(text);
  if (!made.has(key)) made.set(key, FAMILIES[key].markup ? MARKUP : build(FAMILIES[key]));
  const rules = made.get(key);
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(rules.finder)) {
    const kind = rules === MARKUP ? markup(found.groups) : kindOf(found.groups, rules);
    if (!kind) continue;
    if (found.index > at) nodes.push(text.slice(at, found.index));
    nodes.push(el("span", { class: kind }, found[0]));
    at = found.index + found[0].length;
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}
