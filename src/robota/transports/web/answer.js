// An answer that grows: finished blocks are drawn once, the rest is appended to one text node.

import { el, say } from "./dom.js";
import { code, render } from "./markdown.js";
import { Splitter } from "./splitter.js";
import { plain } from "./text.js";

const FED = 16_000; // characters in one step

export class AnswerView {
  constructor(block, context) {
    this.context = context;
    this.splitter = new Splitter();
    this.fed = 0;
    this.finished = false;
    this.tail = null;
    this.tailKind = "";
    this.tailText = "";
    this.codeParts = null;
    this.el = el("div.answer.prose");
  }

  // True if there is more to do in another step.
  update(block) {
    let size = 0;
    const from = this.fed;
    while (this.fed < block.parts.length && size < FED) size += block.parts[this.fed++].length;
    const text = block.parts.slice(from, this.fed).join("");
    const pieces = text ? this.splitter.feed(text) : [];
    const ends = block.done && this.fed === block.parts.length && !this.finished;
    if (ends) {
      this.finished = true;
      pieces.push(...this.splitter.finish());
    }
    this.give(pieces);
    this.drawTail(pieces.length > 0 || this.finished, text);
    this.el.classList.toggle("broken", Boolean(block.broken));
    return this.fed < block.parts.length;
  }

  give(pieces) {
    for (const piece of pieces) {
      const node = render(piece);
      if (piece.kind === "code") {
        if (piece.more && this.codeParts) this.codeParts.push(piece.text);
        else {
          const parts = (this.codeParts = [piece.text]);
          node.copied = () => parts.join("\n");
        }
        node.classList.toggle("open", Boolean(piece.open));
      }
      if (this.tail) this.tail.before(node);
      else this.el.append(node);
      this.context.announce?.(node.textContent);
    }
  }

  drawTail(anew, added) {
    if (anew || !this.tail) {
      const { kind, text, language, more } = this.splitter.tail;
      this.tail?.remove();
      this.tail = null;
      if (!text || this.finished) {
        if (!kind || this.finished) return;
      }
      this.node = document.createTextNode(plain(text));
      if (kind === "code") {
        this.tail = code("", language, more);
        this.tail.querySelector("code").append(this.node);
      } else this.tail = el(kind === "heading" ? "h4" : "p", { class: "tail", "data-kind": kind }, this.node);
      this.tailKind = kind;
      this.el.append(this.tail);
    } else if (this.splitter.tail.kind !== this.tailKind) this.drawTail(true, "");
    else if (added) this.node.appendData(plain(added));
  }
}

export class ThoughtView {
  constructor() {
    this.words = el("div.thought");
    this.title = el("span");
    this.el = el("details.thinking", el("summary", this.title), this.words);
    this.el.addEventListener("toggle", () => this.fill());
    this.fed = 0;
  }

  fill() {
    if (!this.el.open || !this.block) return;
    const text = this.block.parts.slice(this.fed).join("");
    this.fed = this.block.parts.length;
    if (text) this.words.append(plain(text));
  }

  update(block) {
    this.block = block;
    const size = block.parts.reduce((sum, part) => sum + part.length, 0);
    this.title.textContent = block.done ? `Thought for ${Math.max(1, Math.round(size / 5)).toLocaleString("en")} words` : "Thinking";
    this.el.classList.toggle("busy", !block.done);
    this.fill();
  }
}

export function announceEnd(text) {
  if (text.trim()) say(text);
}
