// The page: which session is open, and who is told when something changes.

import {Composer} from "./composer.js"
import {Connection, Following} from "./connection.js"
import {$, ask, el, icon, on, say, set} from "./dom.js"
import {listenToKeys} from "./keys.js"
import {Panel} from "./panel.js"
import {eventsOf} from "./past.js"
import {People} from "./people.js"
import {QuestionCard} from "./question.js"
import {Rail} from "./rail.js"
import {activity, doing} from "./reducer.js"
import {Replay} from "./replay.js"
import {Store} from "./store.js"
import {count, exact, many, money, oneLine} from "./text.js"
import {initTheme} from "./theme.js"
import {Transcript} from "./transcript.js"

const PANEL_EVERY = 400
const RAIL_EVERY = 8000
const {body} = document

class App {
	id = ""
	info = {}
	extra = {}
	connection = new Connection(async () => {
		const text = await ask("Which token?", "The server prints it when it starts, in an address. Paste either.", "", "password")
		if (text) this.enter(text)
	})
	people = new People(this.connection, {tell: given => this.id && this.send("typing", given).catch(() => {}), changed: () => this.following && this.connect()})
	pictures = new Map() // of prompts, by the number of their event
	store = new Store(() => this.draw())
	transcript = new Transcript({opened: new Set(), pictures: this.pictures, cwd: () => this.info.cwd, address: seq => `${location.pathname}#session=${this.id}&event=${seq}`, redraw: () => this.store.arm(), announce: text => this.caughtUp && !this.store.past && say(text)})
	rail = new Rail(this.connection, id => this.open(id))
	question = new QuestionCard((question, given) => this.answer(question, given))
	panel = new Panel(() => this.store.arm())
	replay = new Replay(this.store, event => this.fork(event))
	composer = new Composer({
		submit: (text, images) => this.submit(text, images),
		steer: text => this.send("steer", {text}),
		stop: () => this.stop(),
		typing: typing => this.people.type(typing),
		commands: async () => (this.commands ??= (await this.ask("/commands"))?.commands || []),
		files: async query => (await this.ask(`/files?query=${encodeURIComponent(query)}`)) || [],
		fail: error => this.fail(error)
	})

	constructor() {
		for (const [id, name] of Object.entries({new: "plus", menu: "menu", "show-replay": "clock", "show-panel": "panel", send: "send"})) $(id).append(icon(name))
		on("new", () => this.fresh())
		on("menu", () => this.sheet(true))
		on("veil", () => this.sheet(false))
		on("show-replay", () => this.replay.toggle())
		on("show-panel", () => set("show-panel", "aria-pressed", !body.classList.toggle("wide")))
		on("mode", () => this.change({permissionMode: $("mode").value}), "change")
		on("name", () => this.rename())
		on("cancel-queue", () => this.try(async () => (await this.send("cancel-queue"), (this.store.live.queued = null), this.store.arm())))
		for (const id of ["leave-stay", "leave-go"]) on(id, () => $("leave").close())
		addEventListener("click", event => this.leave(event))
		addEventListener("visibilitychange", () => (this.following?.wake(), this.store.arm()))
		addEventListener("online", () => this.following?.wake())
		addEventListener("hashchange", () => this.start())
		addEventListener("beforeprint", () => this.transcript.drawAll())
		setInterval(() => document.hidden || this.rail.load(), RAIL_EVERY)
		initTheme()
		listenToKeys(this)
	}

	send(rest, given = {}, method = "POST") {
		return this.connection.send(method, `/sessions/${this.id}/${rest}`.replace(/\/$/, ""), given)
	}

	// What the server may not offer: `null` instead of an error.
	async ask(rest = "") {
		return this.id && this.connection.ask(`/sessions/${this.id}${rest}`)
	}

	async try(action) {
		try {
			return await action()
		} catch (error) {
			this.fail(error)
		}
	}

	// The token leaves the address bar at once: addresses are copied, kept and looked at.
	async start() {
		const {token, session, event = 0} = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))
		if (token) this.enter(token, session, event)
		else if (session && session === this.id) this.transcript.reveal(Number(event))
		else {
			await this.rail.load()
			const id = session || this.rail.sessions.find(each => each.state !== "stored")?.id
			if (id) this.open(encodeURIComponent(id), Number(event))
			else this.fresh()
		}
	}

	enter(text, session, event) {
		this.connection.use(/token=([^&\s]+)/.exec(text)?.[1] ?? text.trim())
		history.replaceState(null, "", location.pathname + (session ? `#session=${session}&event=${event}` : ""))
		this.start()
	}

	show(id, info = {}, event = 0) {
		this.following?.leave()
		this.people.type(false)
		if (this.replay.open) this.replay.toggle(false)
		Object.assign(this, {id, info, following: null, commands: null, caughtUp: false, told: "", wanted: event, extra: {opened: new Set(), news: 0}})
		body.classList.remove("arrived")
		this.people.take([])
		for (const load of [...this.pictures.values()].flat()) load.url && URL.revokeObjectURL(load.url)
		this.pictures.clear()
		this.store.reset()
		$("notes").replaceChildren()
		$("lost").hidden = true
		this.fail()
		this.sheet(false)
		this.rail.mark(id)
		history.replaceState(null, "", location.pathname + (id && `#session=${id}${event ? `&event=${event}` : ""}`))
		this.store.arm()
	}

	fresh() {
		this.show("")
		$("prompt").focus()
	}

	open(id, event) {
		const known = this.rail.sessions.find(each => each.id === id)
		this.show(id, known, event)
		return this.try(async () => {
			const info = await this.send("", null, "GET")
			const said = !info.lastEvent && info.messageCount && (await this.ask("/messages"))
			if (this.id !== id) return
			this.learn(info)
			for (const each of said ? eventsOf(said.messages) : []) this.store.add(each, false)
			this.connect()
		})
	}

	learn(info) {
		this.info = {...this.info, ...info}
		const {problems = [], readOnly, pending} = this.info
		const lines = [...problems, ...(readOnly ? ["This session can be read here, not continued."] : [])]
		if (lines.join() !== this.told) {
			const list = el("ul", lines.map(line => el("li", exact(line))))
			$("notes").replaceChildren(lines.length ? el("details.problems", el("summary", icon("warn"), many(lines.length, "remark")), list) : "")
		}
		this.told = lines.join()
		this.store.live.queued = pending
		this.store.arm()
	}

	connect() {
		const {id} = this
		this.following?.leave()
		this.following = new Following(this.connection, `/sessions/${id}/events?client=${this.people.id}&`, {
			after: this.store.live.seq,
			onevent: (event, numbered) => this.hear(event, numbered),
			onstate: (state, error) => {
				if (id !== this.id) return
				$("lost").hidden = state !== "lost"
				if (state === "ended") this.info.state = "stored"
				if (state !== "live") this.people.take([])
				if (error) this.fail(error)
				this.store.arm()
			}
		})
	}

	async hear(event, numbered) {
		if (event.event === "presence") {
			this.people.take(event.clients)
			this.store.arm()
		} else if (event.event === "session_changed") {
			const {id} = this
			const info = await this.ask()
			if (this.id === id) this.learn(info || event)
		} else this.store.add(event, numbered)
	}

	async ensure() {
		if (this.id && this.info.state !== "stored") return
		const made = await this.connection.send("POST", "/sessions", this.id ? {resume: this.id} : {})
		if (!this.id) this.show(made.id)
		this.learn({state: "idle", ...made})
		this.connect()
		this.rail.load()
	}

	fork(event) {
		return this.try(async () => {
			const made = await this.connection.send("POST", "/sessions", {resume: this.id, fork: true, event})
			await this.rail.load()
			this.open(made.id)
		})
	}

	change(fields) {
		return this.try(async () => {
			this.learn(await this.send("", fields, "PATCH"))
			this.rail.load()
		})
	}

	async rename() {
		const name = this.id && (await ask("A name for this session", "It is how the session is found again.", this.title))
		if (name) this.change({name: oneLine(name, 120)})
	}

	async submit(text, images) {
		this.fail()
		await this.ensure()
		this.held = this.info.trustId && !this.store.live.blocks.length && !this.info.readOnly
		if (this.held) throw new Error("First: may this directory do what it wants?")
		if (this.replay.open) this.replay.toggle(false)
		this.transcript.toEnd()
		const called = /^\/([\w:-]+)\s*([^]*)$/.exec(text.trim())
		if (called && !images.length && (await this.command(called[1], called[2]))) return
		await this.send("submit", {prompt: text, stream: false, images})
	}

	// A command answers at once, beside the conversation; what is none is a prompt.
	async command(name, args) {
		const said = await this.send("command", {name, args}).catch(error => {
			if (error.status !== 404) throw error
		})
		if (said?.message) {
			$("transcript").after(el(`div.said.${said.success ? "done" : "failed"}`, el("div.dim", `/${name} ${args}`), el("pre", exact(said.message))))
			say(said.message)
			this.transcript.toEnd()
			this.rail.load()
			this.learn((await this.ask()) || {})
		}
		return said
	}

	answer({id, kind}, answer) {
		this.question.answered = id
		if (kind === "trust") return this.trust(id, answer)
		return this.send(`questions/${encodeURIComponent(id)}`, {answer}).catch(error => {
			this.question.answered = ""
			if (error.status !== 409) this.fail(error) // else somebody was faster
		})
	}

	async trust(trustId, trust) {
		const done = await this.try(() => this.send("trust", {trustId, trust}))
		this.learn(done || (await this.ask()) || {})
		if (done) this.fail()
		if (done && this.held) this.composer.send()
	}

	// Events do not say which prompts had images, nor what is in them.
	async findPictures({blocks, runs}) {
		const {extra} = this
		const {seq} = blocks.findLast(({kind, seq}) => kind === "prompt" && seq) || {}
		const asked = `${seq} ${runs.length}`
		if (!this.id || !seq || asked === extra.pictured) return
		extra.pictured = asked
		const {images = []} = (await this.ask(`/images?after=${extra.seen || 0}`)) || {}
		if (this.extra !== extra) return
		extra.seen = seq - 1
		for (const {event, index} of images) {
			const loads = this.pictures.get(event) || []
			loads[index] ??= async () => (loads[index].url ??= URL.createObjectURL(await (await this.connection.fetch(`/sessions/${this.id}/images/${event}/${index}`, {})).blob()))
			this.pictures.set(event, loads)
			for (const block of this.store.shown.blocks) if (block.seq === event) this.store.shown.changed.add(block)
		}
		if (images.length) this.store.arm()
	}

	stop() {
		if (this.id && this.store.live.running) this.try(() => this.send("abort"))
	}

	leave(event) {
		const link = event.target.closest("a[data-leave]")
		if (!link) return
		event.preventDefault()
		$("leave-url").textContent = $("leave-go").href = link.href
		$("leave").showModal()
	}

	fail(error) {
		$("fault").textContent = oneLine(error?.message, 300)
	}

	sheet(open) {
		body.classList.toggle("sheet", open)
		$("veil").hidden = !open
		if (open) $("search").focus()
	}

	draw() {
		const {shown: state, past, generation} = this.store
		if (this.generation !== generation) {
			this.generation = generation
			this.transcript.reset()
			for (const card of document.querySelectorAll(".said")) card.remove()
		}
		const more = this.transcript.sync(state)
		const {trustId, trust, readOnly} = this.info
		const asks = !past && trustId && !readOnly && !state.questions.size
		this.question.show(asks ? new Map([["", {id: trustId, kind: "trust", lines: trust}]]) : state.questions, state.closed, !past)
		this.drawHead(state, !past)
		this.replay.show()
		if (!more && !this.caughtUp && state.seq >= (this.info.lastEvent || 0)) this.arrive()
		this.later ??= setTimeout(() => ((this.later = null), this.drawPanel(this.store.shown)), past || !state.running ? 0 : PANEL_EVERY)
		return more
	}

	arrive() {
		this.caughtUp = true
		requestAnimationFrame(() => body.classList.add("arrived"))
		if (this.wanted) this.transcript.reveal(this.wanted)
	}

	drawHead(state, live) {
		const {info} = this
		const now = activity(state)
		const shown = now === "idle" && info.state === "stored" ? "stored" : now
		const title = oneLine(info.name || info.preview || state.blocks[0]?.text || "New session", 120)
		const {used, max} = state.context || {}
		const usage = state.runs.reduce((sum, run) => sum + run.inputTokens + run.outputTokens, 0)
		const cost = this.extra.usage?.total?.costUsd || info.cost
		const place = [info.cwd, info.branch, state.model || info.model, info.trusted === false && "not trusted"]
			.filter(Boolean)
			.map(each => oneLine(each, 120))
			.join(" · ")
		const meter = [max && `${Math.round((used / max) * 100)} % of the window`, cost > 0 ? money(cost) : usage && `${count(usage)} tokens`].filter(Boolean).join(" · ")
		const mode = state.mode || info.permissionMode
		const busy = [doing(state), live && this.people.writing].filter(Boolean).join(" · ")
		const key = JSON.stringify([shown, title, place, meter, mode, state.running, state.queued, busy, live, state.blocks.length > 0])
		if (key === this.head) return
		Object.assign(this, {head: key, title})
		$("state").className = `shape ${shown}`
		set("state", "aria-label", shown)
		for (const [id, words] of Object.entries({name: title, place, meter})) $(id).textContent = words
		$("mode").hidden = !mode
		$("mode").value = mode
		$("welcome").hidden = state.blocks.length > 0
		this.composer.show(state.running, state.queued, busy, live)
		document.title = `${{asks: "? ", running: "▸ ", failed: "! "}[activity(this.store.live)] || ""}${title} · robota`
		if (live && this.id) this.rail.note(this.id, shown)
	}

	async showPart(name) {
		const {extra} = this
		extra.part = extra.part === name ? "" : name
		const draw = words => (Object.assign(extra, {words, news: extra.news + 1}), this.store.arm())
		draw("")
		if (extra.part) draw((await this.ask(`/context?part=${encodeURIComponent(name)}`))?.text)
	}

	drawPanel(state) {
		const {extra, panel} = this
		const asked = `${state.runs.length} ${state.fills.length}`
		const changes = [...state.files.values()].reduce((sum, file) => sum + file.changes.length, 0)
		// What has not changed is left alone: somebody may be reading in it.
		const key = `${panel.tab} ${{files: changes, tasks: state.seq}[panel.tab] ?? asked} ${this.generation} ${extra.news}`
		if (key !== panel.key) panel.draw(state, {...extra, cwd: this.info.cwd, show: name => this.showPart(name)})
		panel.key = key
		$("badge").textContent = state.files.size || ""
		this.findPictures(state)
		if (!this.id || this.store.past || this.info.state === "stored" || asked === extra.asked) return
		extra.asked = asked
		Promise.all([this.ask("/context"), this.ask("/usage")]).then(([context, usage]) => {
			Object.assign(extra, {context, usage, news: extra.news + 1})
			this.store.arm()
		})
	}
}

new App().start()
