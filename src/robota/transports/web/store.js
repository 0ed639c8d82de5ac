// Events become states in short steps, so that thousands block nothing.

import {newState, reduce} from "./reducer.js"

const STEP = 5 // milliseconds of a frame
const BEHIND = 250 // while there is a backlog

export let events, live, moment
export let past = null // the state of a moment, while somebody looks back
export let generation = 0
let waiting, taken, draw
let armed = false
let drawn = 0

export const drawWith = action => (draw = action)
export const shown = () => past ?? live

export function reset() {
	events = []
	waiting = []
	taken = moment = 0
	live = newState()
	past = null
	generation++
}

export function add(...event) {
	waiting.push(event)
	arm()
}

// Without frames, too, the title tells of a question.
export function arm() {
	if (armed) return
	armed = true
	if (document.hidden) setTimeout(work, 200)
	else requestAnimationFrame(work)
}

function work() {
	armed = false
	const until = performance.now() + STEP
	while (taken < waiting.length && performance.now() < until) {
		const [event, numbered] = waiting[taken++]
		if (numbered) events.push(event)
		reduce(live, event)
	}
	const behind = taken < waiting.length
	if (!behind) [waiting, taken] = [[], 0]
	if (!behind || performance.now() - drawn > BEHIND) {
		if (draw()) arm()
		drawn = performance.now()
	}
	if (behind) arm()
}

export function look(to) {
	if (to >= events.length) past = null
	if (!past || to < moment) {
		generation++
		moment = 0
		past = to < events.length ? newState() : null
	}
	while (past && moment < to) reduce(past, events[moment++])
	arm()
}

reset()
