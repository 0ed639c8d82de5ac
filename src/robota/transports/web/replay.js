// Looking back: a slider over the events with a tick for each that stands out. Its right end is now.

import { $, icon, svg } from "./dom.js";

const CLASSES = { run_start: "prompt", tool_start: "tool", question_asked: "asks", error: "error", context_compact: "compact", subagent: "" };
const SPEEDS = [1, 4, 16, 64];
const TICKS = 800;

export class Replay {
  constructor(store, { fork, changed }) {
    Object.assign(this, { store, changed, open: false, speed: 1, timer: 0, drawn: 0 });
    this.slider = $("moment");
    this.slider.addEventListener("input", () => (this.pause(), this.go(Number(this.slider.value))));
    const on = (id, name, action) => {
      $(id).prepend(icon(name));
      $(id).addEventListener("click", action);
    };
    on("replay-play", "play", () => (this.timer ? this.pause() : this.play()));
    on("replay-back", "back", () => (this.pause(), this.step(-1)));
    on("replay-next", "next", () => (this.pause(), this.step(1)));
    $("replay-speed").addEventListener("click", () => {
      this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length];
      $("replay-speed").textContent = `${this.speed}×`;
    });
    on("replay-fork", "fork", () => fork(this.store.events[this.at - 1]?.seq ?? 0));
    $("replay-now").addEventListener("click", () => this.toggle(false));
  }

  get at() {
    return this.store.past ? this.store.moment : this.store.events.length;
  }

  toggle(open = !this.open) {
    this.open = open;
    $("replay").hidden = !open;
    this.pause();
    if (!open) this.store.present();
    this.drawn = 0;
    this.show();
    if (open) this.slider.focus();
    this.changed();
  }

  go(moment) {
    if (moment >= this.store.events.length) this.store.present();
    else this.store.look(moment);
    this.show();
  }

  // To the next event that somebody would notice: words come in hundreds.
  step(direction) {
    const { events } = this.store;
    const said = (event) => event && /_delta$|_progress$|^context_update$/.test(event.event);
    let at = this.at + direction;
    while (at > 0 && at < events.length && said(events[at - 1])) at += direction;
    this.go(Math.max(1, at));
  }

  play() {
    if (this.at >= this.store.events.length) this.go(1);
    $("replay-play").replaceChildren(icon("pause"));
    $("replay-play").setAttribute("aria-label", "Pause");
    this.timer = setInterval(() => {
      this.go(this.at + Math.max(1, Math.round(this.speed * 0.8)));
      if (!this.store.past) this.pause();
    }, 33);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    $("replay-play").replaceChildren(icon("play"));
    $("replay-play").setAttribute("aria-label", "Play");
  }

  show() {
    if (!this.open) return;
    const { events } = this.store;
    this.slider.max = events.length;
    this.slider.value = this.at;
    const seq = events[this.at - 1]?.seq ?? 0;
    this.slider.setAttribute("aria-valuetext", this.store.past ? `Event ${seq}` : "Now");
    $("replay-where").textContent = this.store.past ? `${seq} / ${events.at(-1)?.seq ?? 0}` : "Now";
    $("replay-now").hidden = !this.store.past;
    $("replay-fork").disabled = !this.store.past;
    if (this.drawn === events.length) return;
    this.drawn = events.length;
    const seen = events.map((event, at) => [CLASSES[event.event], at]).filter(([kind]) => kind);
    const every = Math.ceil(seen.length / TICKS);
    const ticks = seen.filter((_, at) => at % every === 0).map(([kind, at]) => svg("rect", { class: `tick ${kind}`, x: (at / Math.max(1, events.length)) * 1000, width: 2, height: 10 }));
    $("ticks").replaceChildren(...ticks);
  }
}

