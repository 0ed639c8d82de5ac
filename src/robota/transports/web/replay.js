// Looking back: a slider over the events. Its right end is now.

import {$, icon, on, set, svg} from "./dom.js"

const TICKS = {run_start: "prompt", tool_start: "tool", question_asked: "asks", error: "error", context_compact: "compact"}
const MOST = 800
const SPEEDS = [1, 4, 16, 64]

export class Replay {
	open = false
	speed = 1

	constructor(store, fork) {
		this.store = store
		const buttons = {
			back: () => (this.pause(), this.step(-1)),
			play: () => (this.timer ? this.pause() : this.play()),
			next: () => (this.pause(), this.step(1)),
			fork: () => fork(this.seq),
			speed: () => ($("replay-speed").textContent = `${(this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % 4])}×`),
			now: () => this.toggle(false)
		}
		for (const [id, action] of Object.entries(buttons)) on(`replay-${id}`, action)
		$("replay-back").append(icon("chevron"))
		$("replay-next").append(icon("chevron"))
		on("moment", () => (this.pause(), this.go(Number($("moment").value))), "input")
	}

	get at() {
		return this.store.past ? this.store.moment : this.store.events.length
	}

	get seq() {
		return this.store.events[this.at - 1]?.seq ?? 0
	}

	toggle(open = !this.open) {
		this.open = open
		this.drawn = 0
		$("replay").hidden = !open
		set("show-replay", "aria-pressed", open)
		this.pause()
		this.go(Infinity)
		if (open) $("moment").focus()
	}

	go(moment) {
		this.store.look(moment)
		this.show()
	}

	// To the next event that somebody would notice: words come in hundreds.
	step(direction) {
		const {events} = this.store
		let at = this.at + direction
		while (at > 1 && at < events.length && /_delta$|_progress$|^context_update$/.test(events[at - 1].event)) at += direction
		this.go(Math.max(1, at))
	}

	play() {
		if (!this.store.past) this.go(1)
		this.timer = setInterval(() => {
			this.go(this.at + this.speed)
			if (!this.store.past) this.pause()
		}, 33)
		this.label("pause", "Pause")
	}

	pause() {
		clearInterval(this.timer)
		this.timer = 0
		this.label("play", "Play")
	}

	label(name, label) {
		$("replay-play").replaceChildren(icon(name))
		set("replay-play", "title", label)
	}

	show() {
		if (!this.open) return
		const {events, past} = this.store
		Object.assign($("moment"), {max: events.length, value: this.at})
		set("moment", "aria-valuetext", past ? `Event ${this.seq}` : "Now")
		$("replay-where").textContent = past ? `${this.seq} / ${events.at(-1)?.seq ?? 0}` : "Now"
		$("replay-now").hidden = !past
		$("replay-fork").disabled = !past
		if (this.drawn === events.length) return
		this.drawn = events.length
		const seen = events.map((event, at) => [TICKS[event.event], at]).filter(([kind]) => kind)
		const every = Math.ceil(seen.length / MOST)
		$("ticks").replaceChildren(...seen.filter((_, at) => at % every === 0).map(([kind, at]) => svg(`rect.mark-${kind}`, {x: (at / events.length) * 1000, width: 3, height: 10})))
	}
}
