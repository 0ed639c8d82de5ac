// The page: which session is open, and who is told when something changes.

import { announceEnd } from "./answer.js";
import { Composer } from "./composer.js";
import { Connection, Following } from "./connection.js";
import { $, el, icon, say } from "./dom.js";
import { listenToKeys } from "./keys.js";
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
  constructor() {
    this.connection = new Connection();
    this.connection.onunauthorized = () => this.askToken();
    this.id = "";
    this.info = {};
    this.extra = { opened: new Set() };
    this.store = new Store(() => this.draw());
    const context = {
      opened: new Set(),
      cwd: () => this.info.cwd || "",
      address: (seq) => `${location.pathname}#session=${encodeURIComponent(this.id)}&event=${seq}`,
      redraw: () => this.store.arm(),
      announce: (text) => !this.store.past && this.caughtUp && announceEnd(text),
    };
    this.transcript = new Transcript($("transcript"), $("scroll"), $("pill"), context);
    this.rail = new Rail(this.connection, { open: (id) => this.open(id), fresh: () => this.fresh() });
    this.question = new QuestionCard($("question"), (question, given) => this.answer(question, given));
    this.panel = new Panel(() => this.store.arm());
    this.replay = new Replay(this.store, { fork: (seq) => this.fork(seq), changed: () => this.store.arm() });
    this.composer = new Composer({
      submit: (text, images) => this.submit(text, images),
      stop: () => this.stop(),
      steer: (text) => this.connection.post(this.path("steer"), { text }),
      cancelQueue: () => this.connection.post(this.path("cancel-queue")).then(() => this.unqueue()).catch((error) => this.fail(error)),
      commands: async () => (this.names ??= (this.id && (await this.connection.ask(this.path("commands")))?.commands) || []),
      files: async (query) => (this.id && (await this.connection.ask(this.path(`files?query=${encodeURIComponent(query)}`)))) || [],
      fail: (error) => this.fail(error),
    });
    this.listen();
  }

  path(rest) {
    return `/sessions/${encodeURIComponent(this.id)}/${rest}`;
  }

  listen() {
    for (const [id, name] of [["new", "plus"], ["menu", "menu"], ["show-replay", "clock"], ["show-panel", "panel"], ["send", "send"]]) $(id).append(icon(name));
    $("menu").addEventListener("click", () => this.sheet(true));
    $("veil").addEventListener("click", () => this.sheet(false));
    $("composer").addEventListener("submit", (event) => event.preventDefault());
    $("show-replay").addEventListener("click", () => this.replay.toggle());
    $("show-panel").addEventListener("click", () => $("show-panel").setAttribute("aria-pressed", String(!document.body.classList.toggle("wide"))));
    $("mode").addEventListener("change", () => this.change({ permissionMode: $("mode").value }));
    $("name").addEventListener("dblclick", () => this.rename());
    $("door").addEventListener("close", () => this.takeToken($("token").value));
    $("leave-stay").addEventListener("click", () => $("leave").close());
    $("leave-go").addEventListener("click", () => $("leave").close());
    document.addEventListener("click", (event) => this.leave(event));
    window.addEventListener("hashchange", () => this.follow());
    window.addEventListener("online", () => this.following?.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || (this.following?.hurry(), this.store.arm()));
    window.addEventListener("beforeprint", () => this.transcript.drawAll());
    initTheme($("theme"));
    listenToKeys(this);
  }

  async start() {
    const given = this.readAddress();
    if (given.token) this.connection.use(given.token);
    this.names = null;
    await this.rail.load();
    const id = given.session || this.rail.sessions.find((each) => each.state !== "stored")?.id;
    if (id) await this.open(id, given.event);
    else this.fresh();
    clearInterval(this.timer);
    this.timer = setInterval(() => document.hidden || this.rail.load(), RAIL_EVERY);
  }

  // The token leaves the address bar at once: addresses are copied, kept and looked at.
  readAddress() {
    const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (given.token) {
      const rest = new URLSearchParams(location.hash.slice(1));
      rest.delete("token");
      history.replaceState(null, "", `${location.pathname}${rest.size ? `#${rest}` : ""}`);
    }
    return given;
  }

  follow() {
    const given = this.readAddress();
    if (given.token) this.connection.use(given.token);
    if (given.session && given.session !== this.id) this.open(given.session, given.event);
    else if (given.event) this.transcript.reveal(Number(given.event));
  }

  askToken() {
    if (!$("door").open) $("door").showModal();
  }

  takeToken(text) {
    const found = /token=([^&\s]+)/.exec(text);
    this.connection.use(found ? decodeURIComponent(found[1]) : text.trim());
    this.start();
  }

  // --- sessions -----------------------------------------------------------------------------------------

  fresh() {
    this.close();
    this.info = {};
    history.replaceState(null, "", location.pathname);
    this.sheet(false);
    $("prompt").focus();
    this.store.arm();
  }

  close() {
    this.following?.leave();
    this.following = null;
    if (this.replay.open) this.replay.toggle(false);
    this.id = "";
    this.names = null;
    this.caughtUp = false;
    document.body.classList.remove("arrived");
    this.wanted = 0;
    this.extra = { opened: new Set() };
    this.store.reset();
    $("notes").replaceChildren();
    $("lost").hidden = true;
    this.fail(null);
    this.rail.mark("");
  }

  async open(id, event = 0) {
    this.close();
    this.sheet(false);
    this.id = id;
    this.info = this.rail.sessions.find((each) => each.id === id) || {};
    this.wanted = Number(event) || 0;
    history.replaceState(null, "", `${location.pathname}#session=${encodeURIComponent(id)}${event ? `&event=${event}` : ""}`);
    this.rail.mark(id);
    this.store.arm();
    try {
      this.learn(await this.connection.get(`/sessions/${encodeURIComponent(id)}`));
    } catch (error) {
      if (this.id === id) this.fail(error);
      return;
    }
    if (this.id === id) this.connect();
  }

  learn(info) {
    this.info = { ...this.info, ...info };
    const lines = [...(info.trust || []), ...(info.problems || []).map((each) => (typeof each === "string" ? each : [each.path ?? each.file, each.message ?? each.text].filter(Boolean).join(": ")))];
    if (info.readOnly) lines.push("Another program has this session open: it can be read here, not continued.");
    const note = lines.length ? [el("details.problems", el("summary", icon("warn"), el("span", `${lines.length} ${lines.length === 1 ? "remark" : "remarks"} on this project`)), el("ul", lines.map((line) => el("li", exact(line)))))] : [];
    $("notes").replaceChildren(...note);
    if (info.pending) this.store.live.queued = info.pending;
    this.store.arm();
  }

  connect(after = this.store.live.seq) {
    const { id } = this;
    this.following?.leave();
    this.following = new Following(this.connection, id, {
      after,
      onevent: (event, numbered) => id === this.id && this.store.add(event, numbered),
      onstate: (state, error) => id === this.id && this.connected(state, error),
    });
  }

  connected(state, error) {
    $("lost").hidden = state !== "lost";
    document.body.classList.toggle("offline", state === "lost");
    if (state === "gone" && error?.status === 404) this.fail(new Error("This session is not there any more."));
    if (state === "ended") this.info.state = "stored";
    this.store.arm();
  }

  async ensure() {
    if (!this.id) {
      const made = await this.connection.post("/sessions", {});
      this.id = made.id;
      this.learn(made);
      history.replaceState(null, "", `${location.pathname}#session=${encodeURIComponent(made.id)}`);
      this.connect(0);
      this.rail.load().then(() => this.rail.mark(this.id));
    } else if (this.info.state === "stored") {
      this.learn({ state: "idle", ...(await this.connection.post("/sessions", { resume: this.id })) });
      this.connect();
    }
  }

  async fork(seq) {
    try {
      const made = await this.connection.post("/sessions", { resume: this.id, fork: true, event: seq });
      await this.rail.load();
      await this.open(made.id);
    } catch (error) {
      this.fail(error);
    }
  }

  async change(fields) {
    if (!this.id) return;
    await this.connection.send("PATCH", `/sessions/${encodeURIComponent(this.id)}`, fields).then((info) => info && this.learn(info)).catch((error) => this.fail(error));
  }

  rename() {
    const name = $("name");
    if (!this.id || name.isContentEditable) return;
    name.contentEditable = "plaintext-only";
    name.focus();
    const done = (keep) => {
      name.contentEditable = "false";
      const given = oneLine(name.textContent, 120);
      if (keep && given) this.change({ name: given }).then(() => this.rail.load());
      this.store.arm();
    };
    name.onkeydown = (event) => {
      if (event.key === "Enter") event.preventDefault(), done(true);
      if (event.key === "Escape") event.stopPropagation(), done(false);
    };
    name.onblur = () => name.isContentEditable && done(true);
  }

  // --- what people do -----------------------------------------------------------------------------------

  async submit(text, images) {
    this.fail(null);
    await this.ensure();
    if (this.replay.open) this.replay.toggle(false);
    this.transcript.toEnd();
    const called = /^\/([\w:-]+)(?:\s+([^]*))?$/.exec(text.trim());
    if (called && !images.length) {
      const said = await this.command(called[1], called[2] || "");
      if (said) return;
    }
    await this.connection.post(this.path("submit"), { prompt: text, stream: false, ...(images.length && { images }) });
  }

  // A command answers at once and beside the conversation; one that is a prompt is submitted as one.
  async command(name, args) {
    let said;
    try {
      said = await this.connection.post(this.path("command"), { name, args });
    } catch (error) {
      if (error.status === 404) return false;
      throw error;
    }
    if (said.data && (said.data.input || said.data.prompt)) return false;
    const card = el("div", { class: `said ${said.success === false ? "failed" : ""}` }, el("div.dim", `/${name} ${args}`), el("pre", exact(said.message || "Done.")));
    $("transcript").after(card);
    this.cards = [...(this.cards || []), card].slice(-20);
    say(said.message || "Done.");
    this.transcript.toEnd();
    this.rail.load();
    this.connection.ask(`/sessions/${encodeURIComponent(this.id)}`).then((info) => info && this.learn(info));
    return true;
  }

  async answer(question, given) {
    this.question.answered = question.id;
    try {
      await this.connection.post(this.path(`questions/${encodeURIComponent(question.id)}`), { answer: given });
    } catch (error) {
      this.question.answered = "";
      if (error.status !== 409) this.fail(error);
    }
  }

  stop() {
    if (!this.id || !this.store.live.running) return;
    this.connection.post(this.path("abort")).catch((error) => this.fail(error));
  }

  unqueue() {
    this.store.live.queued = null;
    this.store.arm();
  }

  leave(event) {
    const link = event.target.closest?.("a[data-leave]");
    if (!link) return;
    event.preventDefault();
    $("leave-url").textContent = link.href;
    $("leave-go").href = link.href;
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
    const state = this.store.shown;
    if (this.generation !== this.store.generation) {
      this.generation = this.store.generation;
      this.transcript.reset();
      this.cards?.forEach((card) => card.remove());
      this.cards = [];
    }
    const more = this.transcript.sync(state);
    const live = !this.store.past;
    this.question.show(state.questions, state.closed, live);
    this.drawHead(state, live);
    this.replay.show();
    if (!more && state.seq >= (this.info.lastEvent || 0)) this.arrive();
    const now = performance.now();
    if (now - (this.panel.drawn || 0) > PANEL_EVERY || !state.running) this.drawPanel(state, now);
    return more;
  }

  // The first time that everything is drawn.
  arrive() {
    if (this.caughtUp) return;
    this.caughtUp = true;
    requestAnimationFrame(() => document.body.classList.add("arrived"));
    if (this.wanted) this.transcript.reveal(this.wanted);
    this.wanted = 0;
  }

  drawHead(state, live) {
    const now = activity(state);
    const shown = live && now === "idle" && this.info.state === "stored" ? "stored" : now;
    const name = oneLine(this.info.name || this.info.preview || state.blocks[0]?.text || "New session", 120);
    const usage = state.runs.reduce((sum, run) => sum + (run.inputTokens || 0) + (run.outputTokens || 0), 0);
    const cost = this.extra.usage?.costUsd ?? this.info.cost;
    const key = [shown, name, this.info.cwd, this.info.model, state.model, this.info.permissionMode, state.mode, usage, cost, state.context?.used, state.running, state.queued, doing(state), live, this.composer.filled, state.blocks.length > 0, this.replay.open].join("\n");
    if (key === this.head) return;
    this.head = key;
    $("state").className = `shape ${shown}`;
    $("state").setAttribute("aria-label", shown);
    if (!$("name").isContentEditable) $("name").textContent = name;
    $("place").textContent = [this.info.cwd, this.info.branch, state.model || this.info.model].filter(Boolean).map((each) => oneLine(each, 120)).join(" · ");
    $("mode-label").hidden = !this.info.permissionMode;
    $("mode").value = state.mode || this.info.permissionMode || "default";
    $("mode").disabled = !live;
    $("welcome").hidden = state.blocks.length > 0;
    $("show-replay").setAttribute("aria-pressed", String(this.replay.open));
    const share = state.context?.max ? `${Math.round((state.context.used / state.context.max) * 100)} % of the window` : "";
    $("meter").textContent = [share, cost ? money(cost) : usage ? `${count(usage)} tokens` : ""].filter(Boolean).join(" · ");
    this.composer.show({ running: state.running, queued: state.queued, doing: doing(state), frozen: !live });
    const sign = { asks: "❓ ", running: "▸ ", failed: "⚠ " }[activity(this.store.live)] || "";
    document.title = `${sign}${name} · robota`;
    if (live && this.id) this.rail.note(this.id, { state: shown });
  }

  drawPanel(state, now) {
    const key = `${this.panel.tab} ${state.seq} ${state.files.size} ${this.store.generation} ${Boolean(this.extra.context)} ${Boolean(this.extra.usage)}`;
    if (key === this.panel.key && this.panel.drawn) return;
    this.panel.key = key;
    this.panel.drawn = now;
    this.panel.draw(state, { ...this.extra, cwd: this.info.cwd });
    const { id } = this;
    const mark = `${id} ${state.runs.length} ${state.fills.length}`;
    if (!id || this.store.past || this.info.state === "stored" || mark === this.asked) return;
    this.asked = mark;
    Promise.all([this.connection.ask(this.path("context")), this.connection.ask(this.path("usage"))]).then(([context, usage]) => {
      if (id !== this.id) return;
      Object.assign(this.extra, { context, usage });
      this.panel.key = "";
      this.store.arm();
    });
  }
}

const app = new App();
app.panel.open("chat");
app.start();
