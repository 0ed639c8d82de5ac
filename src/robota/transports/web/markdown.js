// Markdown as elements. HTML in it is text, images are links, links go to http(s) only.

import {copyButton, el, region} from "./dom.js"
import {highlight} from "./highlight.js"
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

export function inline(text, depth = 0) {
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

// Not far, or marks that nothing closes would take the square of the text's length.
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
	const made = el("a", {href: url.href, rel: "noopener noreferrer nofollow", target: "_blank", title: url.href, "data-leave": true})
	if (label === target) return (made.append(label), made)
	made.append(...(depth >= DEEP ? [label] : inline(label.replace(/https?:\/\//g, ""), DEEP)))
	return el("span", made, el("span.host", ` ${url.host}`))
}

export function code(text, language, more) {
	const body = region("code", `${language || ""} code`)
	body.append(...(language && text.length < 20_000 ? highlight(text, language) : [text]))
	const block = el(`div.code${more ? ".more" : ""}`, el("pre", body))
	if (!more)
		block.prepend(el("div.code-head", el("span", language || "text"), copyButton(() => block.copied?.() ?? text, "Copy code")))
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

const cells = row =>
	row
		.trim()
		.replace(/^\||\|$/g, "")
		.split(/(?<!\\)\|/)
		.slice(0, 60)
		.map(cell => cell.trim().replace(/\\\|/g, "|"))
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
	const start = parseInt(sign, 10)
	const made = el(start >= 0 ? "ol" : "ul", {start: start >= 0 && start !== 1 ? start : null})
	let item = null
	let inner = []
	const close = () => {
		if (!item) return
		const at = inner.findIndex((line, index) => index && (ITEM.test(line) || !line.trim()))
		const own = at < 0 ? inner : inner.slice(0, at)
		item.append(...paragraph(own.map(line => line.trim()).join("\n")))
		const below = at < 0 ? [] : inner.slice(at)
		const used = below.filter(line => line.trim())
		if (!used.length) return
		const margin = Math.min(...used.map(line => line.search(/\S/)))
		item.append(
			...renderAll(
				below
					.map(line => line.slice(margin))
					.join("\n")
					.trim(),
				depth + 1
			)
		)
	}
	for (const line of lines) {
		const found = ITEM.exec(line)
		if (found && found[1].length <= indent.length + 1) {
			close()
			item = found[3] ? el("li.check", /x/i.test(found[3]) ? "☑ " : "☐ ") : el("li")
			made.append(item)
			inner = [found[4]]
		} else inner.push(line)
	}
	close()
	return made
}

export function render(piece, depth = 0) {
	const text = plain(piece.text)
	if (piece.kind === "code") return code(text, piece.language, piece.more)
	if (piece.kind === "heading") return heading(text)
	if (piece.kind === "rule") return el("hr")
	if (piece.kind === "list" && depth < DEEP) return list(text, depth)
	if (piece.kind === "table" && (piece.more || RULED.test(text.split("\n")[1] || ""))) return table(text, piece.more)
	if (piece.kind === "quote" && depth < DEEP) return el("blockquote", renderAll(text.replace(/^\s*> ?/gm, ""), depth + 1))
	return el("p", paragraph(text))
}

export const renderAll = (text, depth = 0) => split(text).map(piece => render(piece, depth))
