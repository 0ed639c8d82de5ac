import * as composer from "./composer.js"
import * as connection from "./connection.js"
import {$, ask, el, fill, halt, icon, on, say, set, show, write} from "./dom.js"
import * as panel from "./panel.js"
import * as people from "./people.js"
import * as question from "./question.js"
import * as rail from "./rail.js"
import {activity, doing, eventsOf} from "./reducer.js"
import * as replay from "./replay.js"
import * as store from "./store.js"
import {count, dotted, exact, many, money, oneLine, total} from "./text.js"
import * as transcript from "./transcript.js"

const PANEL_EVERY = 400
const RAIL_EVERY = 8000
const {body} = document
const ORDER = {auto: "light", light: "dark", dark: "auto"}
const THEME = "robota.theme"
const {dataset} = document.documentElement
const pictures = new Map() // of prompts, by the number of their event

let id = ""
let info = {}
let extra = {}
let title = ""
let following, commands, caughtUp, told, wanted, held, head, later, drawn, panelKey

const request = (rest, given = {}, method = "POST") => connection.send(method, `/sessions/${id}${rest}`, given)
const read = async (rest = "") => id && connection.ask(`/sessions/${id}${rest}`)
const fail = error => write("fault", oneLine(error?.message, 300))
const addressOf = (session, event) => `${location.pathname}#session=${session}&event=${event}`
const visit = address => history.replaceState(null, "", address)

const attempt = action => (...given) => action(...given).catch(error => void fail(error))

// The token leaves the address bar at once: addresses are copied and kept.
async function start() {
	const {token, session, event = 0} = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))
	if (token) enter(token, session, event)
	else if (session && session === id) transcript.reveal(+event)
	else {
		await rail.load()
		const found = session || rail.sessions.find(each => each.state !== "stored")?.id
		if (found) open(encodeURIComponent(found), +event)
		else fresh()
	}
}

function enter(text, session, event) {
	connection.use(/token=([^&\s]+)/.exec(text)?.[1] ?? text.trim())
	visit(session ? addressOf(session, event) : location.pathname)
	start()
}

function turnTo(session, known = {}, event = 0) {
	following?.leave()
	people.type(false)
	if (replay.open) replay.toggle(false)
	id = session
	info = known
	following = commands = null
	caughtUp = false
	told = ""
	wanted = event
	extra = {opened: new Set(), news: 0}
	body.classList.remove("arrived")
	people.take([])
	for (const load of [...pictures.values()].flat()) load.url && URL.revokeObjectURL(load.url)
	pictures.clear()
	store.reset()
	fill($("notes"))
	show("lost", false)
	fail()
	sheet(false)
	rail.mark(id)
	visit(event ? addressOf(id, event) : location.pathname + (id && `#session=${id}`))
	store.arm()
}

function fresh() {
	turnTo("")
	$("prompt").focus()
}

const open = attempt(async (session, event) => {
	turnTo(session, rail.find(session), event)
	const given = await request("", null, "GET")
	const said = !given.lastEvent && given.messageCount && (await read("/messages"))
	if (id !== session) return
	learn(given)
	for (const each of said ? eventsOf(said.messages) : []) store.add(each)
	connect()
})

function learn(given) {
	info = {...info, ...given}
	const {problems = [], readOnly, pending} = info
	const lines = readOnly ? [...problems, "This session can be read here, not continued."] : problems
	if (lines.join() !== told) fill($("notes"), lines.length > 0 && el("details.problems", el("summary", icon("warn"), many(lines.length, "remark")), el("ul", lines.map(line => el("li", exact(line))))))
	told = lines.join()
	store.live.queued = pending
	store.arm()
}

function connect() {
	const session = id
	following?.leave()
	following = connection.follow(`/sessions/${id}/events?client=${people.id}&`, following?.after || 0, hear, (state, error) => {
		if (session !== id) return
		show("lost", state === "lost")
		if ((following.over = state === "ended")) refresh({state: "stored"})
		if (state !== "live") people.take([])
		if (error) fail(error)
		store.arm()
	})
}

function hear(event, numbered) {
	if (event.event === "presence") {
		people.take(event.clients)
		store.arm()
	} else if (event.event === "session_changed") refresh(event)
	else store.add(event, numbered)
}

// What has ended may be open again: a prompt was on its way.
async function refresh(known) {
	const heard = following
	const given = (await read()) || known
	if (following !== heard) return
	learn(given)
	if (known.state && given.state !== known.state) connect()
}

const make = given => connection.send("POST", "/sessions", given)

async function ensure() {
	if (id && info.state !== "stored") return
	const made = await make(id ? {resume: id} : {})
	if (!id) turnTo(made.id)
	learn({state: "idle", ...made})
	connect()
	rail.load()
}

const fork = attempt(async event => {
	const made = await make({resume: id, fork: true, event})
	await rail.load()
	open(made.id)
})

const change = attempt(async fields => {
	learn(await request("", fields, "PATCH"))
	rail.load()
})

async function rename() {
	const name = id && (await ask("A name for this session", "To find the session again.", title))
	if (name) change({name: oneLine(name)})
}

async function submit(text, images) {
	fail()
	await ensure()
	held = info.trustId && !store.live.blocks.length && !info.readOnly
	if (held) throw new Error("First: may this directory do what it wants?")
	if (replay.open) replay.toggle(false)
	transcript.toEnd()
	const called = /^\/([\w:-]+)\s*([^]*)$/.exec(text.trim())
	if (called && !images.length && (await command(called[1], called[2]))) return
	await request("/submit", {prompt: text, stream: false, images})
	if (following.over) connect(), refresh({})
}

// A command answers beside the conversation; all else is a prompt.
async function command(name, args) {
	const said = await request("/command", {name, args}).catch(error => {
		if (error.status !== 404) throw error
	})
	if (said?.message) {
		$("transcript").after(el(`div.said.${said.success ? "done" : "failed"}`, el("div.dim", `/${name} ${args}`), el("pre", exact(said.message))))
		say(said.message)
		transcript.toEnd()
		rail.load()
		refresh({})
	}
	return said
}

function answer(asked, given) {
	question.answeredHere(asked.id)
	if (asked.kind === "trust") return trust(asked.id, given)
	return request(`/questions/${encodeURIComponent(asked.id)}`, {answer: given}).catch(error => {
		question.answeredHere("")
		if (error.status !== 409) fail(error) // else somebody was faster
	})
}

async function trust(trustId, trust) {
	const done = await attempt(request)("/trust", {trustId, trust})
	if (!done) return refresh({})
	learn(done)
	fail()
	if (held) composer.send()
}

// Events do not say which prompts had images.
async function findPictures({blocks, runs}) {
	const mine = extra
	const {seq} = blocks.findLast(({kind, seq}) => kind === "prompt" && seq) || {}
	const asked = `${seq} ${runs.length}`
	if (!id || !seq || asked === mine.pictured) return
	mine.pictured = asked
	const {images = []} = (await read(`/images?after=${mine.seen || 0}`)) || {}
	if (extra !== mine) return
	mine.seen = seq - 1
	const {blocks: shown, changed} = store.shown()
	for (const {event, index} of images) {
		const loads = pictures.get(event) || []
		loads[index] ??= async () => (loads[index].url ??= URL.createObjectURL(await (await connection.request(`/sessions/${id}/images/${event}/${index}`)).blob()))
		pictures.set(event, loads)
		for (const block of shown) if (block.seq === event) changed.add(block)
	}
	if (images.length) store.arm()
}

function stop() {
	if (id && store.live.running) attempt(request)("/abort")
}

function leave(event) {
	const link = event.target.closest("a[data-leave]")
	if (!link) return
	halt(event)
	write("leave-url", ($("leave-go").href = link.href))
	$("leave").showModal()
}

function sheet(open) {
	body.classList.toggle("sheet", open)
	show("veil", open)
	if (open) $("search").focus()
}

function draw() {
	const {past, generation} = store
	const state = store.shown()
	if (drawn !== generation) {
		drawn = generation
		transcript.reset()
		for (const card of document.querySelectorAll(".said")) card.remove()
	}
	const more = transcript.sync(state)
	const {trustId, trust, readOnly} = info
	const asks = !past && trustId && !readOnly && !state.questions.size
	question.draw(asks ? new Map([["", {id: trustId, kind: "trust", lines: trust}]]) : state.questions, state.closed, !past)
	drawHead(state, !past)
	replay.draw()
	if (!more && !caughtUp && state.seq >= (info.lastEvent || 0)) arrive()
	later ??= setTimeout(() => ((later = null), drawPanel(store.shown())), past || !state.running ? 0 : PANEL_EVERY)
	return more
}

function arrive() {
	caughtUp = true
	requestAnimationFrame(() => body.classList.add("arrived"))
	if (wanted) transcript.reveal(wanted)
}

function drawHead(state, live) {
	const now = activity(state)
	const shown = now === "idle" && info.state === "stored" ? "stored" : now
	const name = oneLine(info.name || info.preview || state.blocks[0]?.text || "New session")
	const {used, max} = state.context || {}
	const usage = total(state.runs, "inputTokens") + total(state.runs, "outputTokens")
	const cost = extra.usage?.total?.costUsd || info.cost
	const place = dotted(...[info.cwd, info.branch, state.model || info.model, info.trusted === false && "not trusted"].map(each => each && oneLine(each)))
	const meter = dotted(max && `${Math.round((used / max) * 100)} % of the window`, cost > 0 ? money(cost) : usage && `${count(usage)} tokens`)
	const mode = state.mode || info.permissionMode
	const busy = dotted(doing(state), live && people.writing())
	const key = JSON.stringify([shown, name, place, meter, mode, state.running, state.queued, busy, live, state.blocks.length > 0])
	if (key === head) return
	head = key
	title = name
	$("state").className = `shape ${shown}`
	set("state", "aria-label", shown)
	write("name", name)
	write("place", place)
	write("meter", meter)
	show("mode", mode)
	$("mode").value = mode
	show("welcome", !state.blocks.length)
	composer.draw(state.running, state.queued, busy, live)
	document.title = `${{asks: "? ", running: "▸ ", failed: "! "}[activity(store.live)] || ""}${title} · robota`
	if (live && id) rail.note(id, shown)
}

async function showPart(name) {
	const mine = extra
	mine.part = mine.part === name ? "" : name
	const tell = words => (Object.assign(mine, {words, news: mine.news + 1}), store.arm())
	tell("")
	if (mine.part) tell((await read(`/context?part=${encodeURIComponent(name)}`))?.text)
}

async function drawPanel(state) {
	const mine = extra
	const asked = `${state.runs.length} ${state.fills.length}`
	const changes = [...state.files.values()].reduce((sum, file) => sum + file.changes.length, 0)
	// What has not changed stays: somebody may be reading it.
	const key = `${panel.shown} ${{files: changes, tasks: state.seq}[panel.shown] ?? asked} ${drawn} ${mine.news}`
	if (key !== panelKey) panel.draw(state, {...mine, cwd: info.cwd, show: showPart})
	panelKey = key
	write("badge", state.files.size || "")
	findPictures(state)
	if (!id || store.past || info.state === "stored" || asked === mine.asked) return
	mine.asked = asked
	const [context, usage] = await Promise.all([read("/context"), read("/usage")])
	Object.assign(mine, {context, usage, news: mine.news + 1})
	store.arm()
}

function paint(theme) {
	dataset.theme = localStorage[THEME] = theme
	set("theme", "title", `Colours: ${theme}`)
}

const takeBack = attempt(async () => {
	await request("/cancel-queue")
	store.live.queued = null
	store.arm()
})

const KEYS = {
	n: fresh,
	"/": () => (sheet(innerWidth < 900), $("search").focus()),
	r: () => replay.toggle(),
	p: () => $("show-panel").click(),
	i: () => $("prompt").focus(),
	End: () => (replay.open ? replay.toggle(false) : transcript.toEnd()),
	".": () => replay.open && replay.step(1),
	",": () => replay.open && replay.step(-1)
}

paint(ORDER[localStorage[THEME]] ? localStorage[THEME] : "auto")
on("theme", () => paint(ORDER[dataset.theme]))
for (const node of document.querySelectorAll("[data-icon]")) node.prepend(icon(node.dataset.icon))
connection.whenRefused(async () => {
	const text = await ask("Which token?", "The server prints it when it starts, in an address. Paste either.", "", "password")
	if (text) enter(text)
})
store.drawWith(draw)
people.start(given => id && request("/typing", given).catch(() => {}), () => following && connect())
transcript.start({opened: new Set(), pictures, cwd: () => info.cwd, address: seq => addressOf(id, seq), redraw: store.arm, announce: text => caughtUp && !store.past && say(text)})
rail.start(open)
question.start(answer)
panel.start(store.arm)
replay.start(fork)
composer.start({
	submit,
	steer: text => request("/steer", {text}),
	stop,
	typing: people.type,
	commands: async () => (commands ??= (await read("/commands"))?.commands || []),
	files: async query => (await read(`/files?query=${encodeURIComponent(query)}`)) || [],
	fail
})
addEventListener("keydown", event => {
	const {key, target} = event
	if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return
	if (key === "Escape") {
		if (body.classList.contains("sheet")) sheet(false)
		else if (target.id === "search") target.blur()
		else stop()
	} else if (KEYS[key] && (!target.closest("input, textarea, select, #question, [contenteditable]") || (target.id === "moment" && /[,.]/.test(key)))) {
		halt(event)
		KEYS[key]()
	}
})
on("new", fresh)
on("menu", () => sheet(true))
on("veil", () => sheet(false))
on("show-replay", () => replay.toggle())
on("show-panel", () => set("show-panel", "aria-pressed", !body.classList.toggle("wide")))
on("mode", () => change({permissionMode: $("mode").value}), "change")
on("name", rename)
on("cancel-queue", takeBack)
for (const id of ["leave-stay", "leave-go"]) on(id, () => $("leave").close())
addEventListener("click", leave)
addEventListener("visibilitychange", () => (following?.wake(), store.arm()))
addEventListener("online", () => following?.wake())
addEventListener("hashchange", start)
for (const when of ["before", "after"]) addEventListener(`${when}print`, () => transcript.print(when === "before"))
setInterval(() => document.hidden || rail.load(), RAIL_EVERY)
start()
