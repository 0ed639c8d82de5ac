// An answer that grows: finished blocks are drawn once, the rest is appended to one text node.

import {el} from "./dom.js"
import {code, render} from "./markdown.js"
import {Splitter} from "./splitter.js"
import {plain} from "./text.js"

const FED = 3000 // characters in one step
const PIECES = 20 // of a part: those out of sight are not laid out

export class AnswerView {
	splitter = new Splitter()
	fed = 0
	tail = null
	part = el("div.prose")
	el = el("div.answer", this.part)

	constructor(block, {announce}) {
		this.announce = announce
	}

	update(block) {
		const from = this.fed
		for (let size = 0; this.fed < block.parts.length && size < FED;) size += block.parts[this.fed++].length
		const text = block.parts.slice(from, this.fed).join("")
		const pieces = text ? this.splitter.feed(text) : []
		const all = this.fed === block.parts.length
		if (block.done && all) pieces.push(...this.splitter.finish())
		for (const piece of pieces) this.give(piece)
		this.drawTail(pieces.length > 0, text)
		this.el.classList.toggle("broken", Boolean(block.broken))
		return !all
	}

	give(piece) {
		const node = render(piece)
		if (piece.kind === "code") {
			if (!piece.more) {
				const parts = (this.parts = [])
				node.copied = () => parts.join("\n")
			}
			this.parts?.push(piece.text)
			node.classList.toggle("open", piece.open)
		}
		if (this.part.children.length > PIECES && !piece.more) {
			this.part = el("div.prose", this.tail)
			this.el.append(this.part)
		}
		this.part.insertBefore(node, this.tail)
		this.announce?.(node.textContent)
	}

	drawTail(anew, added) {
		const {kind, text, language, more} = this.splitter.tail
		if (!anew && this.tail && kind === this.kind) return added && this.node.appendData(plain(added))
		this.tail?.remove()
		this.tail = null
		this.kind = kind
		if (!kind) return
		this.node = document.createTextNode(plain(text))
		if (kind === "code") {
			this.tail = code("", language, more)
			this.tail.querySelector("code").append(this.node)
		} else this.tail = el(kind === "heading" ? "h4.tail" : "p.tail", this.node)
		this.part.append(this.tail)
	}
}

export class ThoughtView {
	fed = 0
	size = 0
	words = el("div.thought")
	title = el("span")
	el = el("details.thinking", {ontoggle: () => this.fill()}, el("summary", this.title), this.words)

	fill() {
		if (!this.el.open) return
		this.words.append(plain(this.block.parts.slice(this.fed).join("")))
		this.fed = this.block.parts.length
	}

	update(block) {
		this.block = block
		const words = Math.ceil(block.parts.reduce((sum, part) => sum + part.length, 0) / 6)
		this.title.textContent = block.done ? `Thought for ${words} words` : "Thinking"
		this.el.classList.toggle("busy", !block.done)
		this.fill()
	}
}
