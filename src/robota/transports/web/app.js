// The page: which session is open, and who is told when something changes.

import { Composer } from "./composer.js";
import { Connection, Following } from "./connection.js";
import { $, el, icon, on, say, set } from "./dom.js";
import { listenToKeys } from "./keys.js";
import { eventsOf } from "./past.js";
import { Panel } from "./panel.js";
import { QuestionCard } from "./question.js";
import { Rail } from "./rail.js";
import { activity, doing } from "./reducer.js";
import { Replay } from "./replay.js";
import { Store } from "./store.js";
import { count, exact, money, oneLine } from "./text.js";
import { initTheme } from "./theme.js";
import { Transcript } from "./transcript.js";

const PANEL_EVERY = 400;
const RAIL_EVERY = 8000;

class App {
	id = "";
	info = {};
	extra = {};
	connection = new Connection();
	store = new Store(() => this.draw());
	transcript = new Transcript({
		opened: new Set(),
		cwd: () => this.info.cwd,
		address: (seq) => `${location.pathname}#session=${encodeURIComponent(this.id)}&event=${seq}`,
		redraw: () => this.store.arm(),
		announce: (text) => this.caughtUp && !this.store.past && say(text),
	});
	rail = new Rail(this.connection, (id) => this.open(id));
	question = new QuestionCard((question, given) => this.answer(question, given));
	panel = new Panel(() => this.store.arm());
	replay = new Replay(this.store, (event) => this.try(() => this.fork(event)));
	composer = new Composer({
		submit: (text, images) => this.submit(text, images),
		steer: (text) => this.post("steer", { text }),
		stop: () => this.stop(),
		commands: async () => (this.commands ??= (await this.ask("commands"))?.commands || []),
		files: async (query) => (await this.ask(`files?query=${encodeURIComponent(query)}`)) || [],
		fail: (error) => this.fail(error),
	});

	constructor() {
		this.connection.onunauthorized = () => $("door").open || $("door").showModal();
		for (const [id, name] of Object.entries({ new: "plus", menu: "menu", "show-replay": "clock", "show-panel": "panel", send: "send" })) $(id).append(icon(name));
		on("new", () => this.fresh());
		on("menu", () => this.sheet(true));
		on("veil", () => this.sheet(false));
		on("composer", (event) => event.preventDefault(), "submit");
		on("show-replay", () => this.replay.toggle());
		on("show-panel", () => set("show-panel", "aria-pressed", !document.body.classList.toggle("wide")));
		on("mode", () => this.change({ permissionMode: $("mode").value }), "change");
		on("name", () => this.rename());
		on("cancel-queue", () => this.try(async () => (await this.post("cancel-queue"), (this.store.live.queued = null), this.store.arm())));
		on("door", () => this.enter($("token").value), "close");
		on("leave-stay", () => $("leave").close());
		on("leave-go", () => $("leave").close());
		document.addEventListener("click", (event) => this.leave(event));
		document.addEventListener("visibilitychange", () => (this.following?.wake(), this.store.arm()));
		addEventListener("online", () => this.following?.wake());
		addEventListener("hashchange", () => this.start());
		addEventListener("beforeprint", () => this.transcript.drawAll());
		setInterval(() => document.hidden || this.rail.load(), RAIL_EVERY);
		initTheme();
		listenToKeys(this);
	}

	path(rest = "") {
		return `/sessions/${encodeURIComponent(this.id)}${rest && `/${rest}`}`;
	}

	post(rest, body) {
		return this.connection.post(this.path(rest), body);
	}

	async ask(rest) {
		return this.id && this.connection.ask(this.path(rest));
	}

	// The token leaves the address bar at once: addresses are copied, kept and looked at.
	async start() {
		const given = new URLSearchParams(location.hash.slice(1));
		if (given.has("token")) {
			this.connection.use(given.get("token"));
			given.delete("token");
			history.replaceState(null, "", `${location.pathname}#${given}`);
		}
		const event = Number(given.get("event")) || 0;
		if (given.has("session") && given.get("session") === this.id) return this.transcript.reveal(event);
		await this.rail.load();
		const id = given.get("session") || this.rail.sessions.find((each) => each.state !== "stored")?.id;
		if (id) this.open(id, event);
		else this.fresh();
	}

	enter(text) {
		this.connection.use(/token=([^&\s]+)/.exec(text)?.[1] ?? text.trim());
		this.start();
	}

	// --- sessions -----------------------------------------------------------------------------------------

	show(id, info = {}, event = 0) {
		this.following?.leave();
		if (this.replay.open) this.replay.toggle(false);
		Object.assign(this, { id, info, following: null, commands: null, caughtUp: false, wanted: event, extra: { opened: new Set() } });
		document.body.classList.remove("arrived");
		this.store.reset();
		$("notes").replaceChildren();
		$("lost").hidden = true;
		this.fail(null);
		this.sheet(false);
		this.rail.mark(id);
		history.replaceState(null, "", location.pathname + (id && `#session=${encodeURIComponent(id)}${event ? `&event=${event}` : ""}`));
		this.store.arm();
	}

	fresh() {
		this.show("");
		$("prompt").focus();
	}

	open(id, event) {
		this.show(id, this.rail.sessions.find((each) => each.id === id), event);
		return this.try(async () => {
			const info = await this.connection.get(this.path());
			if (this.id !== id) return;
			this.learn(info);
			const said = !info.lastEvent && info.messageCount && (await this.ask("messages"));
			if (this.id !== id) return;
			for (const event of said ? eventsOf(said.messages) : []) this.store.add(event, false);
			this.connect();
		});
	}

	learn(info) {
		this.info = { ...this.info, ...info };
		const told = (each) => (typeof each === "string" ? each : [each.path ?? each.file, each.message ?? each.text].filter(Boolean).join(": "));
		const lines = [...(this.info.trust || []), ...(this.info.problems || [])].map(told);
		if (this.info.readOnly) lines.push("This session can be read here, not continued.");
		const title = `${lines.length} ${lines.length === 1 ? "remark" : "remarks"} on this project`;
		if (lines.length !== $("notes").querySelectorAll("li").length) $("notes").replaceChildren(el("details.problems", el("summary", icon("warn"), title), el("ul", lines.map((line) => el("li", exact(line))))));
		if (!lines.length) $("notes").replaceChildren();
		this.store.live.queued = this.info.pending ?? null;
		this.store.arm();
	}

	connect() {
		const { id } = this;
		this.following?.leave();
		this.following = new Following(this.connection, id, {
			after: this.store.live.seq,
			onevent: (event, numbered) => (event.event === "session_changed" ? this.learn(event) : this.store.add(event, numbered)),
			onstate: (state, error) => {
				if (id !== this.id) return;
				$("lost").hidden = state !== "lost";
				if (state === "ended") this.info.state = "stored";
				if (state === "gone") this.fail(error);
				this.store.arm();
			},
		});
	}

	// A session to write to: a new one, or the one that is kept, opened again.
	async ensure() {
		if (this.id && this.info.state !== "stored") return;
		const made = await this.connection.post("/sessions", this.id ? { resume: this.id } : {});
		if (!this.id) this.show(made.id);
		this.learn({ state: "idle", ...made });
		this.connect();
		this.rail.load();
	}

	async fork(event) {
		const made = await this.connection.post("/sessions", { resume: this.id, fork: true, event });
		await this.rail.load();
		this.open(made.id);
	}

	change(fields) {
		return this.try(async () => {
			this.learn((await this.connection.send("PATCH", this.path(), fields)) || {});
			this.rail.load();
		});
	}

	rename() {
		const name = $("name");
		if (!this.id || name.isContentEditable) return;
		name.contentEditable = "plaintext-only";
		name.focus();
		name.onblur = () => {
			name.removeAttribute("contenteditable");
			const given = oneLine(name.textContent, 120);
			if (given && given !== this.title) this.change({ name: given });
			this.head = "";
			this.store.arm();
		};
		name.onkeydown = (event) => {
			if (event.key === "Escape") name.textContent = this.title;
			if (!/Escape|Enter/.test(event.key)) return;
			event.preventDefault();
			event.stopPropagation();
			name.blur();
		};
	}

	// --- what people do -----------------------------------------------------------------------------------

	async try(action) {
		try {
			await action();
		} catch (error) {
			this.fail(error);
		}
	}

	async submit(text, images) {
		this.fail(null);
		await this.ensure();
		if (this.replay.open) this.replay.toggle(false);
		this.transcript.toEnd();
		const called = /^\/([\w:-]+)\s*([^]*)$/.exec(text.trim());
		if (called && !images.length && (await this.command(called[1], called[2]))) return;
		await this.post("submit", { prompt: text, stream: false, ...(images.length && { images }) });
	}

	// A command answers at once, beside the conversation; what is none is a prompt.
	async command(name, args) {
		const said = await this.post("command", { name, args }).catch((error) => {
			if (error.status !== 404) throw error;
		});
		if (!said) return false;
		if (said.message) {
			$("transcript").after(el(`div.said.${said.success ? "done" : "failed"}`, el("div.dim", `/${name} ${args}`), el("pre", exact(said.message))));
			say(said.message);
		}
		this.transcript.toEnd();
		this.rail.load();
		this.ask("").then((info) => info && this.learn(info));
		return true;
	}

	async answer(question, answer) {
		this.question.answered = question.id;
		await this.try(() =>
			this.post(`questions/${encodeURIComponent(question.id)}`, { answer }).catch((error) => {
				this.question.answered = "";
				if (error.status !== 409) throw error; // somebody else was faster
			}),
		);
	}

	stop() {
		if (this.id && this.store.live.running) this.try(() => this.post("abort"));
	}

	leave(event) {
		const link = event.target.closest("a[data-leave]");
		if (!link) return;
		event.preventDefault();
		$("leave-url").textContent = $("leave-go").href = link.href;
		$("leave").showModal();
	}

	fail(error) {
		$("fault").textContent = error ? oneLine(error.message, 300) : "";
	}

	sheet(open) {
		document.body.classList.toggle("sheet", open);
		$("veil").hidden = !open;
		if (open) $("search").focus();
	}

	// --- drawing ------------------------------------------------------------------------------------------

	draw() {
		const { shown: state, past, generation } = this.store;
		if (this.generation !== generation) {
			this.generation = generation;
			this.transcript.reset();
			for (const card of document.querySelectorAll(".said")) card.remove();
		}
		const more = this.transcript.sync(state);
		this.question.show(state.questions, state.closed, !past);
		this.drawHead(state, !past);
		this.replay.show();
		if (!more && !this.caughtUp && state.seq >= (this.info.lastEvent || 0)) this.arrive();
		if (past || !state.running || performance.now() - (this.drawn || 0) > PANEL_EVERY) this.drawPanel(state);
		return more;
	}

	// The first time that everything is drawn.
	arrive() {
		this.caughtUp = true;
		requestAnimationFrame(() => document.body.classList.add("arrived"));
		if (this.wanted) this.transcript.reveal(this.wanted);
	}

	drawHead(state, live) {
		const { info } = this;
		const now = activity(state);
		const shown = now === "idle" && info.state === "stored" ? "stored" : now;
		const title = oneLine(info.name || info.preview || state.blocks[0]?.text || "New session", 120);
		const usage = state.runs.reduce((sum, run) => sum + run.inputTokens + run.outputTokens, 0);
		const cost = this.extra.usage?.total?.costUsd || info.cost;
		const share = state.context?.max && `${Math.round((state.context.used / state.context.max) * 100)} % of the window`;
		const place = [info.cwd, info.branch, state.model || info.model].filter(Boolean).map((each) => oneLine(each, 120)).join(" · ");
		const meter = [share, cost > 0 ? money(cost) : usage && `${count(usage)} tokens`].filter(Boolean).join(" · ");
		const mode = state.mode || info.permissionMode;
		const key = JSON.stringify([shown, title, place, meter, mode, state.running, state.queued, doing(state), live, state.blocks.length > 0]);
		if (key === this.head) return;
		Object.assign(this, { head: key, title });
		$("state").className = `shape ${shown}`;
		set("state", "aria-label", shown);
		if (!$("name").isContentEditable) $("name").textContent = title;
		$("place").textContent = place;
		$("meter").textContent = meter;
		$("mode-label").hidden = !mode;
		$("mode").value = mode;
		$("welcome").hidden = state.blocks.length > 0;
		this.composer.show(state.running, state.queued, doing(state), live);
		document.title = `${{ asks: "? ", running: "▸ ", failed: "! " }[activity(this.store.live)] || ""}${title} · robota`;
		if (live && this.id) this.rail.note(this.id, shown);
	}

	drawPanel(state) {
		const { id, extra } = this;
		const key = `${this.panel.tab} ${state.seq} ${this.generation} ${extra.news}`;
		if (key === this.panel.key) return;
		this.panel.key = key;
		this.drawn = performance.now();
		this.panel.draw(state, { ...extra, cwd: this.info.cwd });
		const asked = `${state.runs.length} ${state.fills.length}`;
		if (!id || this.store.past || this.info.state === "stored" || asked === extra.asked) return;
		extra.asked = asked;
		Promise.all([this.ask("context"), this.ask("usage")]).then(([context, usage]) => {
			Object.assign(extra, { context, usage, news: asked });
			this.store.arm();
		});
	}
}

new App().start();
