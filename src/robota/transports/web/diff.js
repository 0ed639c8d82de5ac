import {el, framed, image, more, region, silent} from "./dom.js"
import {highlight, language} from "./markdown.js"
import {exact, relative} from "./text.js"

const SHOWN = 400

export function parse(text) {
	const rows = []
	let [before, after] = [0, 0]
	for (const line of String(text).replace(/\n$/, "").split("\n")) {
		const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)/.exec(line)
		const words = line.slice(1)
		if (hunk) {
			;[before, after] = [+hunk[1], +hunk[2]]
			rows.push({kind: "hunk", text: hunk[3].trim()})
		} else if (!before && !after && /^(---|\+\+\+|diff |index )/.test(line)) continue
		else if (line[0] === "+") rows.push({kind: "add", after: after++, text: words})
		else if (line[0] === "-") rows.push({kind: "del", before: before++, text: words})
		else if (line[0] !== "\\") rows.push({kind: "same", before: before++, after: after++, text: words})
	}
	return rows
}

export function tally(rows) {
	const of = kind => rows.filter(row => row.kind === kind).length
	return {added: of("add"), removed: of("del")}
}

export function changeOf({args, metadata, decision}) {
	const path = args.file_path ?? args.filePath
	const written = typeof args.content === "string" && `@@ -0 +1 @@\n${args.content.replace(/\n$/, "").replace(/^/gm, "+")}`
	const text = metadata?.diff || decision?.question.diff || written
	return typeof path === "string" && typeof text === "string" && text ? changeIn(path, text) : null
}

export function changeIn(path, text) {
	const rows = parse(text)
	return {path, text, rows, ...tally(rows)}
}

const SIGNS = {add: ["+", "added "], del: ["−", "removed "], same: [" ", ""]}

export function diffView(change, cwd) {
	const {rows, path, text} = change
	const named = language(path)
	const body = el("tbody")
	const show = (from, to) => {
		for (const {kind, text, before, after} of rows.slice(from, to)) {
			const words = exact(text).slice(0, 2000)
			if (kind === "hunk") {
				if (body.children.length || text) body.append(el("tr.hunk", el("td", {colspan: 4}, `⋯ ${words}`)))
				continue
			}
			const [sign, said] = SIGNS[kind]
			body.append(el(`tr.${kind}`, el("td.no", before), el("td.no", after), el("td.sign", el(".offscreen", said), el("span", silent, sign)), el("td.words", words.length < 500 ? highlight(words, named) : words)))
		}
	}
	show(0, SHOWN)
	const rest = rows.length > SHOWN && more(`Show ${rows.length - SHOWN} more lines`, () => show(SHOWN))
	const head = [el(".path", exact(relative(path, cwd))), counts(change)]
	return framed(head, () => text, "diff", region("div.diff", `Changes of ${exact(path)}`, el("table", body), rest))
}

export const counts = ({added, removed}) => el(".counts", image(`${added} added, ${removed} removed`), added > 0 && el(".plus", `+${added}`), removed > 0 && el(".minus", `−${removed}`))
