// Looking back: a slider over the events. Its right end is now.

import {$, fill, icon, on, set, show, svg, write} from "./dom.js"
import * as store from "./store.js"

const TICKS = {run_start: "prompt", tool_start: "tool", question_asked: "asks", error: "error", context_compact: "compact"}
const MOST = 800
const SPEEDS = [1, 4, 16, 64]

export let open = false
let speed = 1
let drawn, timer

export function start(fork) {
	const buttons = {
		back: () => (pause(), step(-1)),
		play: () => (timer ? pause() : play()),
		next: () => (pause(), step(1)),
		fork: () => fork(seq()),
		speed: () => write("replay-speed", `${(speed = SPEEDS[(SPEEDS.indexOf(speed) + 1) % 4])}×`),
		now: () => toggle(false)
	}
	for (const [id, action] of Object.entries(buttons)) on(`replay-${id}`, action)
	on("moment", () => (pause(), go(+$("moment").value)), "input")
}

const place = () => (store.past ? store.moment : store.events.length)
const seq = () => store.events[place() - 1]?.seq ?? 0

export function toggle(opened = !open) {
	open = opened
	drawn = 0
	show("replay", open)
	set("show-replay", "aria-pressed", open)
	pause()
	go(Infinity)
	if (open) $("moment").focus()
}

function go(moment) {
	store.look(moment)
	draw()
}

export function step(direction) {
	const {events} = store
	let at = place() + direction
	while (at > 1 && at < events.length && /_delta$|_progress$|^context_update$/.test(events[at - 1].event)) at += direction
	go(Math.max(1, at))
}

function play() {
	if (!store.past) go(1)
	timer = setInterval(() => {
		go(place() + speed)
		if (!store.past) pause()
	}, 33)
	label("pause", "Pause")
}

function pause() {
	clearInterval(timer)
	timer = 0
	label("play", "Play")
}

function label(name, words) {
	fill($("replay-play"), icon(name))
	set("replay-play", "title", words)
}

export function draw() {
	if (!open) return
	const {events, past} = store
	Object.assign($("moment"), {max: events.length, value: place()})
	set("moment", "aria-valuetext", past ? `Event ${seq()}` : "Now")
	write("replay-where", past ? `${seq()} / ${events.at(-1)?.seq ?? 0}` : "Now")
	show("replay-now", past)
	$("replay-fork").disabled = !past
	if (drawn === events.length) return
	drawn = events.length
	const seen = events.map((event, at) => [TICKS[event.event], at]).filter(([kind]) => kind)
	const every = Math.ceil(seen.length / MOST)
	fill($("ticks"), seen.filter((_, at) => at % every === 0).map(([kind, at]) => svg(`rect.mark-${kind}`, {x: (at / drawn) * 1000, width: 3, height: 10})))
}
