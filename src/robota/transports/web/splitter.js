// Markdown that is still being written, cut into blocks as soon as each is final.
//
// Every piece is bounded, so that no block, line or list of any length makes one long step of the browser.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const MARKER = /^ {0,3}(?:[-+*]|\d{1,9}[.)])(?:\s|$)/;
const LINES = 120;
const SIZE = 12000;

export const isRow = (line) => line.trimStart().startsWith("|");

function kindOf(line) {
  if (/^ {0,3}#{1,6}(\s|$)/.test(line)) return "heading";
  if (/^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line)) return "rule";
  if (MARKER.test(line)) return "list";
  if (/^ {0,3}>/.test(line)) return "quote";
  return isRow(line) ? "table" : "text";
}

export class Splitter {
  constructor() {
    this.lines = [];
    this.kind = "";
    this.partial = "";
    this.size = 0;
    this.fence = null;
    this.more = false; // the piece goes on with the one before it
  }

  // What was not given away yet, and what it looks like so far.
  get tail() {
    const kind = this.fence ? "code" : this.kind || (this.partial ? kindOf(this.partial) : "");
    return { kind, text: [...this.lines, this.partial].join("\n"), language: this.fence?.language || "", more: this.more };
  }

  feed(text) {
    const pieces = [];
    const [first, ...rest] = text.split("\n");
    this.partial += first;
    for (const line of rest) {
      this.#line(this.partial, pieces);
      this.partial = line;
    }
    while (this.partial.length > SIZE) {
      this.#line(this.partial.slice(0, SIZE), pieces, true);
      this.partial = this.partial.slice(SIZE);
    }
    return pieces;
  }

  finish() {
    const pieces = [];
    if (this.partial) this.#line(this.partial, pieces);
    this.partial = "";
    if (this.fence) this.#code(pieces, true);
    this.#give(pieces);
    this.fence = null;
    this.more = false;
    return pieces;
  }

  #line(line, pieces, cut = false) {
    if (this.fence) {
      if (!cut && this.fence.end.test(line)) {
        this.#code(pieces, true);
        this.fence = null;
        return;
      }
      this.#keep(line);
      if (this.#full()) this.#code(pieces, false);
      return;
    }
    const blank = !line.trim();
    const opened = !cut && FENCE.exec(line);
    if (opened && !(this.kind === "list" && /^\s/.test(line))) {
      this.#give(pieces);
      const mark = opened[1][0] === "`" ? "`" : "~";
      this.fence = { language: opened[2].trim().split(/\s/)[0].toLowerCase(), end: new RegExp(`^ {0,3}${mark}{${opened[1].length},}\\s*$`) };
      return;
    }
    if (!this.kind) {
      if (blank) return;
      this.#open(line, pieces);
      return;
    }
    if (this.#goesOn(line, blank)) {
      this.#keep(line);
      if (this.#full()) this.#split(pieces);
      return;
    }
    this.#give(pieces);
    if (!blank) this.#open(line, pieces);
  }

  #open(line, pieces) {
    this.kind = kindOf(line);
    this.#keep(line);
    if (this.kind === "heading" || this.kind === "rule" || this.#full()) this.#give(pieces);
  }

  #goesOn(line, blank) {
    const next = blank ? "" : kindOf(line);
    if (this.kind === "list") {
      const after = this.lines[this.lines.length - 1].trim() === "";
      return blank || /^\s/.test(line) || (next === "list" && next !== "rule") || (!after && next === "text");
    }
    if (blank) return false;
    if (this.kind === "table") return next === "table";
    if (this.kind === "quote") return next === "quote" || next === "text";
    return next === "text" || next === "table";
  }

  #keep(line) {
    this.lines.push(line);
    this.size += line.length + 1;
  }

  #full() {
    return this.lines.length >= LINES || this.size >= SIZE;
  }

  // A list is cut in front of its last item, everything else where it stands.
  #split(pieces) {
    const { kind } = this;
    if (kind === "list") {
      const last = this.lines.findLastIndex((line) => MARKER.test(line) && !/^\s/.test(line));
      if (last > 0) {
        const rest = this.lines.splice(last);
        this.#give(pieces);
        this.kind = kind;
        rest.forEach((line) => this.#keep(line));
        return;
      }
    }
    this.#give(pieces, kind === "table");
    this.kind = kind === "table" ? kind : "";
  }

  #code(pieces, ends) {
    pieces.push({ kind: "code", text: this.lines.join("\n"), language: this.fence.language, more: this.more, open: !ends });
    this.more = !ends;
    this.#reset();
  }

  #give(pieces, more = false) {
    if (this.lines.length) pieces.push({ kind: this.kind, text: this.lines.join("\n").trimEnd(), more: this.more });
    this.more = more;
    this.#reset();
  }

  #reset() {
    this.lines = [];
    this.size = 0;
    this.kind = "";
  }
}

export function split(text) {
  const splitter = new Splitter();
  const pieces = splitter.feed(text);
  return [...pieces, ...splitter.finish()];
}
