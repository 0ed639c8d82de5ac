// Tool calls: one line each, that opens into what went in, what came out and what changed.

import { changeOf, counts, diffView, tally } from "./diff.js";
import { copyButton, el, icon, svg } from "./dom.js";
import { code } from "./markdown.js";
import { about, exact, oneLine, output, pretty, relative, seconds } from "./text.js";

const ICONS = {
  Read: "file", NotebookRead: "file", Edit: "pencil", Write: "pencil", MultiEdit: "pencil", NotebookEdit: "pencil", Bash: "terminal", BashOutput: "terminal", KillBash: "terminal",
  Grep: "search", Glob: "search", LS: "search", WebFetch: "globe", WebSearch: "globe", web_search: "globe", Task: "agent", Agent: "agent", TodoWrite: "list", Skill: "list",
};
const SAID = { running: "running", success: "done", error: "failed", denied: "denied" };
const SHOWN = 30_000;
const LINES = 200;

export const toolIcon = (name) => icon(ICONS[name] || "tool");

export function mark(state) {
  if (state === "running") return el("span.spin", { role: "img", "aria-label": "running" });
  return el("span", { class: `mark ${state}` }, icon(state === "success" ? "ok" : state === "denied" ? "no" : "warn", SAID[state]));
}

// Where in the time of its group a call ran.
function bar(call, span) {
  const end = call.state === "running" ? span : call.begin + call.duration;
  const x = span ? (call.begin / span) * 48 : 0;
  const width = Math.max(2, span ? ((end - call.begin) / span) * 48 : 2);
  return svg("svg.bar", { viewBox: "0 0 48 4", "aria-hidden": "true" }, svg("rect.track", { width: 48, height: 4, rx: 2 }), svg("rect.ran", { x: Math.min(x, 46), width: Math.min(width, 48 - Math.min(x, 46)), height: 4, rx: 2 }));
}

function lines(text, label) {
  const shown = output(text).replace(/\n+$/, "");
  const all = shown.split("\n");
  const cut = all.length > LINES || shown.length > SHOWN;
  const body = el("pre", { tabindex: "0", role: "region", "aria-label": label }, cut ? all.slice(0, LINES).join("\n").slice(0, SHOWN) : shown);
  const rest = cut && el("button", { type: "button", class: "more", onclick: () => ((body.textContent = shown), rest.remove()) }, `Show all ${all.length.toLocaleString("en")} lines`);
  return el("div.code", el("div.code-head", el("span", label), copyButton(() => text, `Copy ${label}`)), body, rest || null);
}

function inputView(call, cwd) {
  if (typeof call.args.command === "string") {
    const told = call.args.description ? el("p.dim", oneLine(call.args.description)) : null;
    return [told, code(exact(call.args.command), "bash")];
  }
  const rows = Object.entries(call.args).filter(([, value]) => value !== null);
  if (!rows.length) return [];
  return [el("dl.inputs", rows.flatMap(([name, value]) => [el("dt", oneLine(name)), el("dd", exact(relative(pretty(value), cwd)).slice(0, 4000))]))];
}

const SCOPES = { once: "once", session: "for this session", project: "for this project" };

export function decisionText({ answer, by, reason }) {
  if (reason === "aborted") return "Nobody answered: it was stopped.";
  if (reason !== "answered") return "Nobody was there to answer.";
  const who = by ? ` by ${oneLine(by, 60)}` : "";
  if (!answer?.allow) return `Refused${who}${answer?.message ? `: ${exact(answer.message)}` : "."}`;
  return `Allowed ${SCOPES[answer.scope || "once"]}${who}${answer.updatedInput ? ", with a changed input" : ""}.`;
}

function resultView(call, cwd) {
  const change = call.state === "success" || call.state === "running" ? changeOf(call) : null;
  const said = call.state === "success" ? call.content : call.error || call.content;
  const parts = change ? [diffView(change, cwd)] : inputView(call, cwd);
  if (call.decision) parts.push(el("p.dim", decisionText(call.decision)));
  if (call.state === "running" && call.progress.length) parts.push(lines(call.progress.join("\n"), "Output so far"));
  else if (said && !change) parts.push(lines(said, call.state === "success" ? "Output" : "Error"));
  if (call.state !== "success" && call.content && call.error && call.error !== call.content) parts.push(lines(call.content, "Output"));
  if (call.metadata?.sandboxNote) parts.push(el("p.dim", exact(call.metadata.sandboxNote)));
  return parts;
}

class CallView {
  constructor(call, context) {
    this.context = context;
    this.body = el("div.call-body");
    this.head = el("summary");
    this.el = el("details.call", { id: `event-${call.seq}` }, this.head, this.body);
    this.el.open = context.opened.has(call.id);
    this.el.addEventListener("toggle", () => {
      context.opened[this.el.open ? "add" : "delete"](call.id);
      this.open();
    });
  }

  open() {
    if (this.el.open && this.filled !== this.key) this.body.replaceChildren(...resultView(this.call, this.context.cwd()).filter(Boolean));
    if (this.el.open) this.filled = this.key;
  }

  update(call, span) {
    this.call = call;
    const key = `${call.state} ${call.asks} ${call.progress.length} ${span}`;
    if (key === this.key) return;
    this.key = key;
    const change = call.state === "success" ? changeOf(call) : null;
    const { added, removed } = change ? tally(change.rows) : {};
    const live = call.state === "running" ? call.progress.at(-1) : "";
    this.el.dataset.state = call.asks ? "asks" : call.state;
    this.head.replaceChildren(
      toolIcon(call.name),
      el("span.name", oneLine(call.name, 60)),
      el("span.about", about(call, this.context.cwd())),
      ...(change ? [counts(added, removed)] : []),
      ...(span === null ? [] : [bar(call, span)]),
      el("span.time", call.duration === undefined ? (call.asks ? "asks" : "") : seconds(call.duration)),
      call.asks ? el("span.shape.asks") : mark(call.state),
    );
    if (live) this.head.append(el("span.progress", oneLine(output(live).trim().split("\n").pop(), 200)));
    this.open();
  }
}

export class ToolsView {
  constructor(block, context) {
    this.context = context;
    this.views = [];
    this.title = el("span");
    this.el = el("div.tools");
  }

  update(block) {
    const many = block.calls.length > 1;
    const span = many ? Math.max(...block.calls.map((call) => call.begin + (call.duration || 0))) : null;
    if (many && !this.title.isConnected) this.el.prepend(el("div.group-head", this.title));
    this.el.classList.toggle("many", many);
    if (many) {
      const running = block.calls.filter((call) => call.state === "running").length;
      this.title.textContent = running ? `${block.calls.length} calls, ${running} running` : `${block.calls.length} calls in ${seconds(span)}`;
    }
    block.calls.forEach((call, at) => {
      if (!this.views[at]) {
        this.views[at] = new CallView(call, this.context);
        this.el.append(this.views[at].el);
      }
      this.views[at].update(call, span);
    });
  }
}
