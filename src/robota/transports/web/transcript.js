// The middle column. Of much only what is near the screen has elements.

import {makeView} from "./blocks.js"
import {$, el, on} from "./dom.js"

const CHUNK = 40
const ALL = 300 // so many blocks are simply there
const STEP = 5 // milliseconds of drawing in a frame
const GUESS = 2400 // pixels of a chunk that was never drawn

const [root, scroller, pill] = [$("transcript"), $("scroll"), $("pill")]
const observer = new IntersectionObserver(moved, {root: scroller, rootMargin: "1500px 0px"})
let context, blocks, chunks, views, dirty, placed, following, top, height, printing

export function start(given) {
	context = given
	on("scroll", scrolled, "scroll")
	on("pill", toEnd)
	reset()
	// Once, after the layout.
	const watcher = new ResizeObserver(() => following && toEnd())
	for (const each of [root, scroller]) watcher.observe(each)
}

export function reset() {
	observer.disconnect()
	root.replaceChildren()
	blocks = []
	chunks = []
	views = new Map()
	dirty = new Set()
	placed = top = height = 0
	following = pill.hidden = true
}

function scrolled() {
	const {scrollTop, scrollHeight, clientHeight} = scroller
	const left = scrollHeight - scrollTop - clientHeight
	// Only going up stops following, not what shrinks.
	if (left < 60) following = true
	else if (top - scrollTop > Math.max(0, height - scrollHeight) + 1) following = false
	else if (following) scroller.scrollTop = 1e9
	top = scrollTop
	height = scrollHeight
	pill.hidden = following || left < 200
}

export function toEnd() {
	following = pill.hidden = true
	scroller.scrollTop = 1e9
}

export function sync(state) {
	blocks = state.blocks
	while (chunks.length * CHUNK < blocks.length) openChunk()
	for (const block of state.changed) dirty.add(block)
	state.changed.clear()
	while (placed < blocks.length) {
		blocks[placed].at = placed
		dirty.add(blocks[placed++])
	}
	return draw()
}

function openChunk() {
	const last = chunks.at(-1)
	const chunk = {at: chunks.length * CHUNK, el: el("div.chunk"), live: true}
	chunks.push(chunk)
	root.append(chunk.el)
	observer.observe(chunk.el)
	if (last && !last.near) freeze(last)
}

const chunkOf = ({at}) => chunks[Math.floor(at / CHUNK)]
const inside = ({at}) => blocks.slice(at, at + CHUNK)

function draw() {
	const until = performance.now() + STEP
	for (const block of dirty) {
		dirty.delete(block)
		const chunk = chunkOf(block)
		if (!chunk.live) continue
		let view = views.get(block)
		if (!view) {
			view = makeView(block, context)
			views.set(block, view)
			view.el.at = block.at
			view.el.classList.toggle("fresh", block === blocks.at(-1))
			chunk.el.insertBefore(view.el, [...chunk.el.children].find(child => child.at > block.at) || null)
		}
		if (view.update(block)) dirty.add(block)
		if (performance.now() > until) break
	}
	if (dirty.size) return true
	for (const chunk of chunks) if (chunk.live) chunk.el.style.minHeight = ""
}

function moved(entries) {
	for (const {target, isIntersecting} of entries) {
		const chunk = chunks.find(each => each.el === target)
		if (!chunk) continue
		chunk.near = isIntersecting
		if (chunk.near) thaw(chunk)
		else freeze(chunk)
	}
}

function freeze(chunk) {
	if (printing || blocks.length <= ALL || chunk === chunks.at(-1)) return
	const height = chunk.el.offsetHeight || GUESS
	chunk.live = false
	for (const block of inside(chunk)) views.delete(block)
	chunk.el.style.minHeight = `${height}px`
	chunk.el.replaceChildren()
}

function thaw(chunk) {
	if (chunk.live) return
	chunk.live = true
	for (const block of inside(chunk)) dirty.add(block)
	context.redraw()
}

export function reveal(seq, tries = 60) {
	const block = blocks.findLast(each => each.seq <= seq)
	if (!block) return
	following = false
	const chunk = chunkOf(block)
	thaw(chunk)
	const view = views.get(block)
	;(view ?? chunk).el.scrollIntoView({block: view ? "center" : "start"})
	if (view) {
		view.el.classList.add("found")
		setTimeout(() => view.el.classList.remove("found"), 2000)
	} else if (tries) requestAnimationFrame(() => reveal(seq, tries - 1))
}

export function print(now) {
	printing = now
	for (const chunk of chunks) now || chunk.near ? thaw(chunk) : freeze(chunk)
	while (now && dirty.size) draw()
}
