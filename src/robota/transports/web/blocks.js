// One view for each kind of block. A view has an element and an `update` that says whether it needs more steps.

import { AnswerView, ThoughtView } from "./answer.js";
import { copy, copyButton, el, icon } from "./dom.js";
import { renderAll } from "./markdown.js";
import { exact, oneLine, plain } from "./text.js";
import { decisionText, mark, ToolsView } from "./tools.js";

const still = (build) =>
  class {
    constructor(block, context) {
      this.el = build(block, context);
    }

    update() {}
  };

const LONG = 900;

const Prompt = still((block) => {
  const text = exact(block.text);
  const words = el("div.words", text.slice(0, LONG));
  const rest = text.length > LONG && el("button", { type: "button", class: "more", onclick: () => ((words.textContent = text), rest.remove()) }, `Show all ${text.length.toLocaleString("en")} characters`);
  const images = block.images ? el("span.dim", block.images === 1 ? "1 image" : `${block.images} images`) : null;
  return el("div.prompt", { role: "article", "aria-label": "Prompt" }, words, rest || null, images, copyButton(() => block.text, "Copy prompt"));
});

const Notice = still((block) => el("div", { class: `notice ${block.tone || ""}` }, el("span", plain(block.text))));

const FIXES = [
  [/auth|key|401|credential/i, "Check the key of the provider: `robota setup` asks for it again."],
  [/rate|429|overload|quota/i, "The service is busy or your quota is used up. Wait a little and send “go on”."],
  [/context|window|too long/i, "/compact makes room in the window; /clear starts anew."],
  [/network|connect|timeout|unreachable/i, "Check the connection and send “go on”: nothing of the conversation is lost."],
];

const Failure = still((block) => {
  const said = `${block.code} ${block.text}`;
  const fix = FIXES.find(([known]) => known.test(said))?.[1] ?? (block.recoverable ? "Send “go on” to try again." : "");
  const words = el("p", plain(block.text));
  const how = fix && el("p.fix", fix.replace(/`/g, ""));
  return el("div.error", { role: "alert" }, icon("warn"), el("div", words, how || null), el("code.dim", oneLine(block.code, 60)));
});

const Compact = still((block) => {
  const title = `Summarised ${block.trigger === "manual" ? "by hand" : "to make room"}: ${block.before.toFixed(0)} % → ${block.after.toFixed(0)} % of the window`;
  return el("details.compact", el("summary", el("span", title)), el("div.prose", renderAll(block.summary || "No summary was kept.")));
});

function decided({ question, answer, reason, by }) {
  if (reason !== "answered") return decisionText({ answer, by, reason });
  const who = by ? ` by ${oneLine(by, 60)}` : "";
  if (question.kind === "plan") return `${answer?.approve ? "Plan approved" : "Plan sent back"}${who}${answer?.feedback ? `: ${exact(answer.feedback)}` : "."}`;
  if (question.kind === "choice") return answer?.dismissed ? `No answer${who}.` : (answer?.chosen || []).map(exact).join(", ");
  return `${{ accept: "Filled in", decline: "Declined", cancel: "Cancelled" }[answer?.action] || "Answered"}${who}.`;
}

const Decision = still((block) => {
  const { question } = block;
  const asked = question.question || question.message || "";
  const plan = question.plan && el("details.plan", el("summary", "Plan"), el("div.prose", renderAll(question.plan)));
  return el("div.decision", asked ? el("div.dim", exact(asked)) : null, plan || null, el("div", icon("ok"), el("span", decided(block))));
});

class Lane {
  constructor(block, context) {
    this.views = [];
    this.context = { ...context, announce: null };
    this.title = el("span.name");
    this.state = el("span.time");
    this.end = el("span");
    this.body = el("div.lane-body");
    this.el = el("details.lane", { open: true }, el("summary", icon("agent"), this.title, el("span.about"), this.state, this.end), this.body);
  }

  update(block) {
    const { inside } = block;
    const calls = inside.calls.size;
    this.title.textContent = oneLine(inside.name || block.agent, 60);
    this.state.textContent = calls ? `${calls} ${calls === 1 ? "call" : "calls"}` : "";
    const state = inside.running ? "running" : inside.outcome === "failed" ? "error" : inside.outcome ? "success" : "running";
    if (this.shown !== state) this.end.replaceChildren(mark((this.shown = state)));
    let more = false;
    inside.blocks.forEach((each, at) => {
      const fresh = !this.views[at];
      if (fresh) {
        this.views[at] = makeView(each, this.context);
        this.body.append(this.views[at].el);
      }
      if (fresh || inside.changed.has(each) || this.views[at].unfinished) more = Boolean((this.views[at].unfinished = this.views[at].update(each))) || more;
    });
    inside.changed.clear();
    return more;
  }
}

const VIEWS = { prompt: Prompt, answer: AnswerView, thinking: ThoughtView, tools: ToolsView, notice: Notice, error: Failure, compact: Compact, decision: Decision, lane: Lane };

export function makeView(block, context) {
  const view = new (VIEWS[block.kind] || Notice)(block, context);
  const anchor = el("a.anchor", { href: `#event=${block.seq}`, title: `Event ${block.seq}: copy its address`, "aria-label": `Address of event ${block.seq}` }, icon("link"));
  anchor.addEventListener("click", (event) => {
    event.preventDefault();
    copy(context.address(block.seq));
    history.replaceState(null, "", context.address(block.seq));
  });
  const frame = el("div", { class: `block ${block.kind}-block`, "data-seq": block.seq }, view.el, anchor);
  return { el: frame, update: (each) => view.update(each) };
}
