// Markdown as elements. HTML is text, images are links, links go to http(s) only.

import {el, framed, region} from "./dom.js"
import {isRow, split} from "./splitter.js"
import {plain} from "./text.js"

const INLINE = new RegExp(
	[
		"\\\\(?<escaped>[!-/:-@[-`{-~])",
		"(?<ticks>`{1,3})(?<code>[^`]+)\\k<ticks>(?!`)",
		'!?\\[(?<label>[^\\[\\]\\n]{0,400})\\]\\((?<target>[^\\s()<>]{1,2000}(?:\\([^\\s()]{0,200}\\)[^\\s()]{0,500})?)(?:\\s+"[^"\\n]{0,200}")?\\)',
		"<?(?<address>https?://[^\\s<>\"'`\\])]+(?:\\([^\\s()<>]{0,200}\\))?)>?",
		"(?<mark>\\*\\*|__|~~|\\*|_)(?=\\S)"
	].join("|"),
	"gu"
)
const MARKS = {"**": ["strong", /\*\*(?!\*)/g], __: ["strong", /__(?![\w_])/g], "~~": ["s", /~~/g], "*": ["em", /\*(?!\*)/g], _: ["em", /_(?![\w_])/g]}
const DEEP = 6

function inline(text, depth = 0) {
	const nodes = []
	let at = 0
	const finder = new RegExp(INLINE)
	for (let found = finder.exec(text); found; found = finder.exec(text)) {
		const {escaped, code: ticked, label, target, address, mark} = found.groups
		let node = null
		if (escaped) node = escaped
		else if (ticked !== undefined) node = el("code", ticked.replace(/\n/g, " ").replace(/^ (.*) $/, "$1"))
		else if (target) node = link(target, label || target, depth)
		else if (address) {
			const bare = address.replace(/[.,;:!?*_~]+$/, "")
			finder.lastIndex = found.index + found[0].indexOf(bare) + bare.length + (bare === address && found[0].endsWith(">"))
			node = link(bare, bare, depth)
		} else if (depth < DEEP && !(mark[0] === "_" && /[\p{L}\p{N}]$/u.test(text.slice(0, found.index).slice(-2)))) {
			const start = found.index + mark.length
			const end = closing(text, mark, start)
			if (end > start) {
				node = el(MARKS[mark][0], inline(text.slice(start, end), depth + 1))
				finder.lastIndex = end + mark.length
			}
		}
		if (node === null) continue
		nodes.push(text.slice(at, found.index), node)
		at = finder.lastIndex
	}
	return [...nodes, text.slice(at)]
}

// Not far, or unclosed marks would take quadratic time.
function closing(text, mark, start) {
	const near = text.slice(start, start + 1000)
	const finder = MARKS[mark][1]
	finder.lastIndex = 1
	const found = finder.exec(near)
	return found && /\S/.test(near[found.index - 1]) ? start + found.index : -1
}

function link(target, label, depth) {
	const url = URL.canParse(target) ? new URL(target) : null
	if (!url || !/^https?:$/.test(url.protocol)) return `${label} (${target})`
	const made = el("a", {href: url.href, target: "_blank", title: url.href, "data-leave": true})
	if (label === target) return (made.append(label), made)
	made.append(...(depth >= DEEP ? [label] : inline(label.replace(/https?:\/\//g, ""), DEEP)))
	return el("span", made, el(".host", ` ${url.host}`))
}

export function code(text, language, more) {
	const body = region("code", `${language || ""} code`)
	body.append(...(language && text.length < 20_000 ? highlight(text, language) : [text]))
	const pre = el("pre", body)
	const block = more ? el("div.code.more", pre) : framed(el("span", language || "text"), () => block.copied?.() ?? text, "code", pre)
	return block
}

function paragraph(text) {
	const lines = text.split("\n")
	return lines.flatMap((line, at) => [...inline(line.replace(/ +$|\\$/, "")), at === lines.length - 1 ? "" : / {2,}$|\\$/.test(line) ? el("br") : "\n"])
}

function heading(text) {
	const [, marks, words] = /^\s*(#{1,6})\s*(.*?)\s*#*\s*$/.exec(text) || [0, "#", text]
	// The page has headings of its own above these.
	return el(`h${Math.min(6, marks.length + 2)}.h${marks.length}`, inline(words))
}

const cells = row => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).slice(0, 60).map(cell => cell.trim().replace(/\\\|/g, "|"))
const RULED = /^[\s|:-]*-[\s|:-]*$/

function table(text, more) {
	const rows = text.split("\n").filter(isRow)
	const ruled = !more && RULED.test(rows[1] || "")
	const sides = ruled ? cells(rows[1]).map(cell => (cell.endsWith(":") ? (cell.startsWith(":") ? ".middle" : ".end") : "")) : []
	const row = (line, tag) => el("tr", cells(line).map((cell, at) => el(tag + (sides[at] || ""), inline(cell))))
	const head = ruled && el("thead", row(rows[0], "th"))
	return region("div.scroll", "Table", el("table", head, el("tbody", rows.slice(ruled ? 2 : 0).map(line => row(line, "td")))))
}

const ITEM = /^(\s*)([-+*]|\d{1,9}[.)])(?:\s+|$)(\[[ xX]\]\s+)?(.*)$/

function list(text, depth) {
	const lines = text.split("\n")
	const [, indent, sign] = ITEM.exec(lines[0]) || [0, "", "-"]
	const items = []
	for (const line of lines) {
		const [, margin, , check, words] = ITEM.exec(line) || []
		if (margin?.length <= indent.length + 1) items.push({check, inner: [words]})
		else items.at(-1)?.inner.push(line)
	}
	const item = ({check, inner}) => {
		const at = inner.findIndex((line, index) => index && (ITEM.test(line) || !line.trim()))
		const below = at < 0 ? [] : inner.splice(at)
		const margin = Math.min(...below.filter(line => line.trim()).map(line => line.search(/\S/)))
		const box = check && (/x/i.test(check) ? "☑ " : "☐ ")
		return el(check ? "li.check" : "li", box, paragraph(inner.map(line => line.trim()).join("\n")), margin < Infinity && renderAll(below.map(line => line.slice(margin)).join("\n").trim(), depth + 1))
	}
	const start = parseInt(sign, 10)
	return el(start >= 0 ? "ol" : "ul", {start: start !== 1 && start}, items.map(item))
}

export function render(piece, depth = 0) {
	const {kind, language, more} = piece
	const text = plain(piece.text)
	if (kind === "code") return code(text, language, more)
	if (kind === "heading") return heading(text)
	if (kind === "rule") return el("hr")
	if (kind === "list" && depth < DEEP) return list(text, depth)
	if (kind === "table" && (more || RULED.test(text.split("\n")[1] || ""))) return table(text, more)
	if (kind === "quote" && depth < DEEP) return el("blockquote", renderAll(text.replace(/^\s*> ?/gm, ""), depth + 1))
	return el("p", paragraph(text))
}

export const renderAll = (text, depth = 0) => split(text).map(piece => render(piece, depth))

const slashes = {line: "//", block: true}
const FAMILIES = {
	python: {names: "py pyi python3 rb ruby", line: "#", triple: true},
	js: {names: "javascript jsx ts tsx typescript mjs cjs go golang", ...slashes, tick: true},
	c: {names: "cpp c++ h hpp cc java cs csharp kotlin kt swift scala dart php", ...slashes},
	rust: {names: "rs", ...slashes, quote: '"'},
	shell: {names: "sh bash zsh console dockerfile makefile", line: "#"},
	sql: {line: "--", block: true},
	css: {names: "scss less", block: true},
	yaml: {names: "yml toml ini cfg", line: "#", key: true},
	json: {names: "jsonc jsonl", key: true},
	markup: {names: "html xml svg vue"},
	diff: {names: "patch"}
}
const KNOWN = new Map(Object.entries(FAMILIES).flatMap(([family, {names = family}]) => [family, ...names.split(" ")].map(name => [name, family])))
// One list: words of other languages are rare.
const WORDS = new Set(
	"and as assert async await begin bool break case catch char class const continue def default defer del delete do done double echo elif else end enum except exit export extends false fi final finally float fn for from func function go if implements import in int interface is lambda let long loop map match mod mut new nil None not null or package pass private protected pub public raise range return self Self static struct super switch this throw true True False try type typeof undefined use var void where while with yield select insert into values update set table join on group by order limit".split(" ")
)
const finders = new Map([["markup", /(?<c><!--[^]*?(?:-->|$))|(?<k><\/?[\w:-]+|\/?>)|(?<t>\b[\w:-]+(?==["']))|(?<s>"[^"\n]*"|'[^'\n]*')/g], ["diff", /(?<ins>^\+.*\n?)|(?<del>^-.*\n?)|(?<c>^@@.*)/gm]])

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

export const language = name => KNOWN.get(String(name || "").toLowerCase().split(".").pop())

export function highlight(text, name) {
	const key = language(name)
	if (!key) return [text]
	if (!finders.has(key)) finders.set(key, finderOf(FAMILIES[key]))
	const nodes = []
	let at = 0
	for (const found of text.matchAll(finders.get(key))) {
		const kind = kindOf(found.groups)
		if (!kind) continue
		nodes.push(text.slice(at, found.index), el(`.${kind}`, found[0]))
		at = found.index + found[0].length
	}
	return [...nodes, text.slice(at)]
}
