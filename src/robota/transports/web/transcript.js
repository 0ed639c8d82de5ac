// The middle column. Blocks stand in chunks; of a long conversation only the chunks near the screen have elements.

import { makeView } from "./blocks.js";
import { el } from "./dom.js";

const CHUNK = 40;
const ALL = 300; // so many blocks are simply there
const STEP = 8; // milliseconds of drawing before the rest waits for another frame
const GUESS = 2400; // pixels of a chunk that was never drawn

export class Transcript {
  constructor(root, scroller, pill, context) {
    Object.assign(this, { root, scroller, pill, context });
    this.observer = new IntersectionObserver((entries) => this.moved(entries), { root: scroller, rootMargin: "1500px 0px" });
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    pill.addEventListener("click", () => this.toEnd());
    // What comes into sight may turn out longer than it was guessed.
    new ResizeObserver(() => this.following && this.toEnd()).observe(root);
    this.reset();
  }

  reset() {
    this.observer.disconnect();
    this.root.replaceChildren();
    this.blocks = [];
    this.chunks = [];
    this.views = new Map();
    this.dirty = new Set();
    this.placed = 0;
    this.following = true;
    this.pill.hidden = true;
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    // Something that grew below the reader is no reason to stop following: only going up is.
    if (left < 60) this.following = true;
    else if (scrollTop < this.top) this.following = false;
    this.top = scrollTop;
    this.pill.hidden = this.following || left < 200;
  }

  toEnd() {
    this.following = true;
    this.pill.hidden = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  // Takes what changed; true if there is more to draw.
  sync(conversation) {
    this.blocks = conversation.blocks;
    while (this.chunks.length * CHUNK < this.blocks.length) this.openChunk();
    for (const block of conversation.changed) this.dirty.add(block);
    conversation.changed.clear();
    for (let at = this.placed; at < this.blocks.length; at++) this.dirty.add(this.blocks[at]);
    this.placed = this.blocks.length;
    return this.draw();
  }

  openChunk() {
    const last = this.chunks.at(-1);
    const chunk = { at: this.chunks.length, el: el("div.chunk"), live: true };
    this.chunks.push(chunk);
    this.root.append(chunk.el);
    this.observer.observe(chunk.el);
    if (last && this.blocks.length > ALL && !last.near) this.freeze(last, GUESS);
  }

  draw() {
    const until = performance.now() + STEP;
    let drawn = false;
    for (const block of this.dirty) {
      this.dirty.delete(block);
      const at = this.place(block);
      const chunk = this.chunks[Math.floor(at / CHUNK)];
      if (!chunk?.live) continue;
      const known = this.views.get(block.id);
      const view = known || makeView(block, this.context);
      if (!known) {
        this.views.set(block.id, view);
        view.at = at;
        const next = [...chunk.el.children].find((child) => Number(child.dataset.at) > at);
        view.el.dataset.at = at;
        chunk.el.insertBefore(view.el, next || null);
      }
      drawn = true;
      if (view.update(block)) this.dirty.add(block);
      if (performance.now() > until) break;
    }
    if (drawn && this.following) this.scroller.scrollTop = 1e9;
    return this.dirty.size > 0;
  }

  place(block) {
    if (block.place === undefined || this.blocks[block.place] !== block) block.place = this.blocks.lastIndexOf(block);
    return block.place;
  }

  moved(entries) {
    for (const entry of entries) {
      const chunk = this.chunks.find((each) => each.el === entry.target);
      if (!chunk) continue;
      chunk.near = entry.isIntersecting;
      if (chunk.near && !chunk.live) this.thaw(chunk);
      else if (!chunk.near && chunk.live && this.blocks.length > ALL && chunk !== this.chunks.at(-1)) this.freeze(chunk, entry.boundingClientRect.height);
    }
  }

  freeze(chunk, height) {
    chunk.live = false;
    for (const block of this.inside(chunk)) this.views.delete(block.id);
    chunk.el.style.height = `${Math.round(height) || GUESS}px`;
    chunk.el.replaceChildren();
  }

  thaw(chunk) {
    chunk.live = true;
    chunk.el.style.height = "";
    for (const block of this.inside(chunk)) this.dirty.add(block);
    this.context.redraw();
  }

  inside(chunk) {
    return this.blocks.slice(chunk.at * CHUNK, (chunk.at + 1) * CHUNK);
  }

  // Brings the block of an event into sight.
  reveal(seq) {
    const at = this.blocks.findLastIndex((block) => block.seq <= seq);
    if (at < 0) return false;
    this.following = false;
    const chunk = this.chunks[Math.floor(at / CHUNK)];
    if (!chunk.live) this.thaw(chunk);
    chunk.el.scrollIntoView({ block: "start" });
    const show = (tries) => {
      const view = this.views.get(this.blocks[at]?.id);
      if (!view && tries) return requestAnimationFrame(() => show(tries - 1));
      if (!view) return;
      view.el.scrollIntoView({ block: "center" });
      view.el.classList.add("found");
      setTimeout(() => view.el.classList.remove("found"), 2000);
    };
    show(60);
    return true;
  }

  drawAll() {
    for (const chunk of this.chunks) if (!chunk.live) this.thaw(chunk);
    while (this.dirty.size) this.draw();
  }
}
