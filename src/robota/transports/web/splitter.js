// Markdown cut into blocks as soon as each is final; none is long.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/
const MARKER = /^ {0,3}(?:[-+*]|\d{1,9}[.)])(?:\s|$)/
const LINES = 120
const SIZE = 12_000

export const isRow = line => /^\s*\|/.test(line)

function kindOf(line) {
	if (/^ {0,3}#{1,6}(\s|$)/.test(line)) return "heading"
	if (/^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line)) return "rule"
	if (MARKER.test(line)) return "list"
	if (/^ {0,3}>/.test(line)) return "quote"
	return isRow(line) ? "table" : "text"
}

export function makeSplitter() {
	let partial = ""
	let fence = null
	let more = false // the piece goes on with the one before it
	const pieces = []
	let lines, size, kind

	function reset() {
		lines = []
		size = 0
		kind = ""
	}

	function keep(line) {
		lines.push(line)
		size += line.length + 1
	}

	const full = () => lines.length >= LINES || size >= SIZE
	const given = () => pieces.splice(0)

	function give(goesOn = false) {
		if (lines.length) pieces.push({kind, text: lines.join("\n").trimEnd(), more})
		more = goesOn
		reset()
	}

	function giveCode(ends) {
		pieces.push({kind: "code", text: lines.join("\n"), language: fence.language, more, open: !ends})
		more = !ends
		reset()
	}

	function continues(line, blank) {
		const next = blank ? "" : kindOf(line)
		if (kind === "list") return blank || /^\s/.test(line) || next === "list" || (next === "text" && lines.at(-1).trim() !== "")
		if (kind === "table") return next === "table"
		return next === "text" || next === (kind === "quote" ? "quote" : "table")
	}

	function cutHere() {
		const was = kind
		const last = was === "list" ? lines.findLastIndex(line => MARKER.test(line) && !/^\s/.test(line)) : 0
		const rest = last > 0 ? lines.splice(last) : []
		give(was === "table")
		if (rest.length || was === "table") kind = was
		rest.forEach(keep)
	}

	function take(line, cut) {
		if (fence) {
			const ends = !cut && fence.end.test(line)
			if (!ends) keep(line)
			if (ends || full()) giveCode(ends)
			if (ends) fence = null
			return
		}
		const blank = !line.trim()
		const opened = !cut && FENCE.exec(line)
		if (opened && !(kind === "list" && /^\s/.test(line))) {
			give()
			const [, marks, info] = opened
			fence = {language: info.trim().split(/\s/)[0].toLowerCase(), end: new RegExp(`^ {0,3}${marks[0]}{${marks.length},}\\s*$`)}
		} else if (kind && continues(line, blank)) {
			keep(line)
			if (full()) cutHere()
		} else {
			give()
			if (blank) return
			kind = kindOf(line)
			keep(line)
			if (/heading|rule/.test(kind) || full()) give()
		}
	}

	function feed(text) {
		const [first, ...rest] = text.split("\n")
		partial += first
		for (const line of rest) {
			take(partial)
			partial = line
		}
		for (; partial.length > SIZE; partial = partial.slice(SIZE)) take(partial.slice(0, SIZE), true)
		return given()
	}

	function finish() {
		if (partial) take(partial)
		if (fence) giveCode(true)
		give()
		partial = ""
		fence = null
		return given()
	}

	const tail = () => ({kind: fence ? "code" : kind || (partial && kindOf(partial)), text: [...lines, partial].join("\n"), language: fence?.language, more})

	reset()
	return {feed, finish, tail}
}

export function split(text) {
	const {feed, finish} = makeSplitter()
	return [...feed(text), ...finish()]
}
