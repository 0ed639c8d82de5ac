// Markdown that is still being written, cut into blocks as soon as each is final.
// Every piece is bounded, so that nothing makes one long step of the browser.

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

export class Splitter {
	partial = ""
	fence = null
	more = false // the piece goes on with the one before it

	constructor() {
		this.#reset()
	}

	#reset() {
		this.lines = []
		this.size = 0
		this.kind = ""
	}

	get tail() {
		const kind = this.fence ? "code" : this.kind || (this.partial && kindOf(this.partial))
		return {kind, text: [...this.lines, this.partial].join("\n"), language: this.fence?.language, more: this.more}
	}

	feed(text) {
		const pieces = []
		const [first, ...rest] = text.split("\n")
		this.partial += first
		for (const line of rest) {
			this.#line(this.partial, pieces)
			this.partial = line
		}
		for (; this.partial.length > SIZE; this.partial = this.partial.slice(SIZE)) this.#line(this.partial.slice(0, SIZE), pieces, true)
		return pieces
	}

	finish() {
		const pieces = []
		if (this.partial) this.#line(this.partial, pieces)
		if (this.fence) this.#code(pieces, true)
		this.#give(pieces)
		this.partial = ""
		this.fence = null
		this.more = false
		return pieces
	}

	#line(line, pieces, cut = false) {
		if (this.fence) {
			const ends = !cut && this.fence.end.test(line)
			if (!ends) this.#keep(line)
			if (ends || this.#full()) this.#code(pieces, ends)
			if (ends) this.fence = null
			return
		}
		const blank = !line.trim()
		const opened = !cut && FENCE.exec(line)
		if (opened && !(this.kind === "list" && /^\s/.test(line))) {
			this.#give(pieces)
			const [, marks, info] = opened
			this.fence = {language: info.trim().split(/\s/)[0].toLowerCase(), end: new RegExp(`^ {0,3}${marks[0]}{${marks.length},}\\s*$`)}
		} else if (this.kind && this.#goesOn(line, blank)) {
			this.#keep(line)
			if (this.#full()) this.#split(pieces)
		} else {
			this.#give(pieces)
			if (blank) return
			this.kind = kindOf(line)
			this.#keep(line)
			if (/heading|rule/.test(this.kind) || this.#full()) this.#give(pieces)
		}
	}

	#goesOn(line, blank) {
		const next = blank ? "" : kindOf(line)
		if (this.kind === "list") return blank || /^\s/.test(line) || next === "list" || (next === "text" && this.lines.at(-1).trim() !== "")
		if (this.kind === "table") return next === "table"
		return next === "text" || next === (this.kind === "quote" ? "quote" : "table")
	}

	#keep(line) {
		this.lines.push(line)
		this.size += line.length + 1
	}

	#full() {
		return this.lines.length >= LINES || this.size >= SIZE
	}

	// A list is cut in front of its last item, everything else where it stands.
	#split(pieces) {
		const {kind} = this
		const last = kind === "list" ? this.lines.findLastIndex(line => MARKER.test(line) && !/^\s/.test(line)) : 0
		const rest = last > 0 ? this.lines.splice(last) : []
		this.#give(pieces, kind === "table")
		if (rest.length || kind === "table") this.kind = kind
		rest.forEach(line => this.#keep(line))
	}

	#code(pieces, ends) {
		pieces.push({kind: "code", text: this.lines.join("\n"), language: this.fence.language, more: this.more, open: !ends})
		this.more = !ends
		this.#reset()
	}

	#give(pieces, more = false) {
		if (this.lines.length) pieces.push({kind: this.kind, text: this.lines.join("\n").trimEnd(), more: this.more})
		this.more = more
		this.#reset()
	}
}

export function split(text) {
	const splitter = new Splitter()
	return [...splitter.feed(text), ...splitter.finish()]
}
