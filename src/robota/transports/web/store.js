// The events of the open session, and two states made of them: as it is, and as it is shown.
// Work is done in short steps before a frame, so that thousands of events block nothing.

import {newState, reduce} from "./reducer.js"

const STEP = 5 // milliseconds of a frame
const BEHIND = 250 // while there is a backlog, this often something is drawn

export class Store {
	armed = false
	drawn = 0
	generation = 0

	constructor(draw) {
		this.draw = draw
		this.reset()
	}

	reset() {
		this.events = []
		this.waiting = []
		this.taken = 0
		this.live = newState()
		this.past = null // the state of a moment, while somebody looks back
		this.moment = 0
		this.generation++
	}

	get shown() {
		return this.past ?? this.live
	}

	add(event, numbered) {
		this.waiting.push([event, numbered])
		this.arm()
	}

	// A frame may never come while nobody looks: the title must still say that there is a question.
	arm() {
		if (this.armed) return
		this.armed = true
		if (document.hidden) setTimeout(() => this.work(), 200)
		else requestAnimationFrame(() => this.work())
	}

	work() {
		this.armed = false
		const until = performance.now() + STEP
		while (this.taken < this.waiting.length && performance.now() < until) {
			const [event, numbered] = this.waiting[this.taken++]
			if (numbered) this.events.push(event)
			reduce(this.live, event)
		}
		const behind = this.taken < this.waiting.length
		if (!behind) [this.waiting, this.taken] = [[], 0]
		if (!behind || performance.now() - this.drawn > BEHIND) {
			const more = this.draw()
			this.drawn = performance.now()
			if (more) this.arm()
		}
		if (behind) this.arm()
	}

	look(moment) {
		if (moment >= this.events.length) this.past = null
		if (!this.past || moment < this.moment) {
			this.generation++
			this.moment = 0
			this.past = moment < this.events.length ? newState() : null
		}
		while (this.past && this.moment < moment) reduce(this.past, this.events[this.moment++])
		this.arm()
	}
}
