// The events of the session that is open, and the two states made of them: as it is, and as it is shown.
//
// Work is done in short steps before a frame, so that thousands of events never block typing or scrolling.

import { newState, reduce } from "./reducer.js";

const STEP = 7; // milliseconds of a frame
const BEHIND = 250; // while there is a backlog, this often something is drawn

export class Store {
  constructor(draw) {
    this.draw = draw;
    this.drawn = 0;
    this.armed = false;
    this.reset();
  }

  reset() {
    this.events = [];
    this.waiting = [];
    this.taken = 0;
    this.live = newState();
    this.past = null; // the state of a moment, while somebody looks back
    this.moment = 0; // so many events it is made of
    this.generation = (this.generation || 0) + 1;
  }

  get shown() {
    return this.past ?? this.live;
  }

  add(event, numbered = true) {
    this.waiting.push(event);
    event.numbered = numbered;
    this.arm();
  }

  // A frame may never come while nobody looks: the title must still say that there is a question.
  arm() {
    if (this.armed) return;
    this.armed = true;
    if (document.hidden) setTimeout(() => this.work(), 200);
    else requestAnimationFrame(() => this.work());
  }

  work() {
    this.armed = false;
    const until = performance.now() + STEP;
    while (this.taken < this.waiting.length && performance.now() < until) {
      const most = Math.min(this.waiting.length, this.taken + 50);
      while (this.taken < most) this.take(this.waiting[this.taken++]);
    }
    const behind = this.taken < this.waiting.length;
    if (!behind) [this.waiting, this.taken] = [[], 0];
    if (!behind || performance.now() - this.drawn > BEHIND) {
      const more = this.draw();
      this.drawn = performance.now();
      if (more) this.arm();
    }
    if (behind) this.arm();
  }

  take(event) {
    if (event.numbered) this.events.push(event);
    reduce(this.live, event);
  }

  // The state after so many events; the whole number is the present.
  look(moment) {
    const at = Math.max(0, Math.min(moment, this.events.length));
    const forward = this.past && at >= this.moment;
    if (!forward) {
      this.past = newState();
      this.moment = 0;
      this.generation++;
    }
    while (this.moment < at) reduce(this.past, this.events[this.moment++]);
    this.arm();
  }

  present() {
    if (!this.past) return;
    this.past = null;
    this.generation++;
    this.arm();
  }
}
