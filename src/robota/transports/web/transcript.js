// The middle column. Of a long conversation only the chunks of blocks near the screen have elements.

import {makeView} from "./blocks.js"
import {$, el, on} from "./dom.js"

const CHUNK = 40
const ALL = 300 // so many blocks are simply there
const STEP = 5 // milliseconds of drawing in a frame
const GUESS = 2400 // pixels of a chunk that was never drawn

export class Transcript {
	constructor(context) {
		Object.assign(this, {context, root: $("transcript"), scroller: $("scroll"), pill: $("pill")})
		this.observer = new IntersectionObserver(entries => this.moved(entries), {root: this.scroller, rootMargin: "1500px 0px"})
		on("scroll", () => this.scrolled(), "scroll")
		on("pill", () => this.toEnd())
		// After the browser has laid out what is new, so that it does so once.
		const watcher = new ResizeObserver(() => this.following && this.toEnd())
		for (const each of [this.root, this.scroller]) watcher.observe(each)
		this.reset()
	}

	reset() {
		this.observer.disconnect()
		this.root.replaceChildren()
		Object.assign(this, {blocks: [], chunks: [], views: new Map(), dirty: new Set(), placed: 0, following: true, top: 0, height: 0})
		this.pill.hidden = true
	}

	scrolled() {
		const {scrollTop, scrollHeight, clientHeight} = this.scroller
		const left = scrollHeight - scrollTop - clientHeight
		// Only going up stops following, not what grows below; what turns out smaller moves the rest by no more than that.
		if (left < 60) this.following = true
		else if (this.top - scrollTop > Math.max(0, this.height - scrollHeight) + 1) this.following = false
		else if (this.following) this.scroller.scrollTop = 1e9
		Object.assign(this, {top: scrollTop, height: scrollHeight})
		this.pill.hidden = this.following || left < 200
	}

	toEnd() {
		this.following = true
		this.pill.hidden = true
		this.scroller.scrollTop = 1e9
	}

	sync({blocks, changed}) {
		this.blocks = blocks
		while (this.chunks.length * CHUNK < blocks.length) this.openChunk()
		for (const block of changed) this.dirty.add(block)
		changed.clear()
		while (this.placed < blocks.length) {
			blocks[this.placed].at = this.placed
			this.dirty.add(blocks[this.placed++])
		}
		return this.draw()
	}

	openChunk() {
		const last = this.chunks.at(-1)
		const chunk = {at: this.chunks.length * CHUNK, el: el("div.chunk"), live: true}
		this.chunks.push(chunk)
		this.root.append(chunk.el)
		this.observer.observe(chunk.el)
		if (last && this.blocks.length > ALL && !last.near) this.freeze(last, last.el.offsetHeight)
	}

	chunkOf({at}) {
		return this.chunks[Math.floor(at / CHUNK)]
	}

	draw() {
		const until = performance.now() + STEP
		for (const block of this.dirty) {
			this.dirty.delete(block)
			const chunk = this.chunkOf(block)
			if (!chunk.live) continue
			let view = this.views.get(block)
			if (!view) {
				view = makeView(block, this.context)
				this.views.set(block, view)
				view.el.at = block.at
				view.el.classList.toggle("fresh", block === this.blocks.at(-1))
				chunk.el.insertBefore(view.el, [...chunk.el.children].find(child => child.at > block.at) || null)
			}
			if (view.update(block)) this.dirty.add(block)
			if (performance.now() > until) break
		}
		if (this.dirty.size) return true
		for (const chunk of this.chunks) if (chunk.live) chunk.el.style.minHeight = ""
	}

	moved(entries) {
		for (const {target, isIntersecting, boundingClientRect} of entries) {
			const chunk = this.chunks.find(each => each.el === target)
			if (!chunk) continue
			chunk.near = isIntersecting
			if (chunk.near) this.thaw(chunk)
			else if (chunk.live && this.blocks.length > ALL && chunk !== this.chunks.at(-1)) this.freeze(chunk, boundingClientRect.height)
		}
	}

	freeze(chunk, height) {
		chunk.live = false
		for (const block of this.inside(chunk)) this.views.delete(block)
		chunk.el.style.minHeight = `${height || GUESS}px`
		chunk.el.replaceChildren()
	}

	thaw(chunk) {
		if (chunk.live) return
		chunk.live = true
		for (const block of this.inside(chunk)) this.dirty.add(block)
		this.context.redraw()
	}

	inside(chunk) {
		return this.blocks.slice(chunk.at, chunk.at + CHUNK)
	}

	reveal(seq, tries = 60) {
		const block = this.blocks.findLast(each => each.seq <= seq)
		if (!block) return
		this.following = false
		this.thaw(this.chunkOf(block))
		const view = this.views.get(block)
		;(view ?? this.chunkOf(block)).el.scrollIntoView({block: view ? "center" : "start"})
		if (view) {
			view.el.classList.add("found")
			setTimeout(() => view.el.classList.remove("found"), 2000)
		} else if (tries) requestAnimationFrame(() => this.reveal(seq, tries - 1))
	}

	drawAll() {
		for (const chunk of this.chunks) this.thaw(chunk)
		while (this.dirty.size) this.draw()
	}
}
