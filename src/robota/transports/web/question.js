// The question that is open, pinned above the composer. Its keys count only while the card itself has the focus.

import { changeOf, diffView, parse } from "./diff.js";
import { el, icon, say } from "./dom.js";
import { code, renderAll } from "./markdown.js";
import { exact, oneLine, plain, pretty, relative } from "./text.js";
import { decisionText } from "./tools.js";

const key = (letter) => el("kbd", { "aria-hidden": "true" }, letter);
const act = (letter, label, onclick, kind = "") => el("button", { type: "button", class: `act ${kind}`, "data-key": letter, onclick }, label, key(letter));

// The command with the part that decided it marked.
function marked(command, part) {
  const text = exact(command);
  const at = part ? text.indexOf(exact(part)) : -1;
  if (at < 0 || exact(part) === text) return code(text, "bash");
  const block = code("", "bash");
  block.copied = () => command;
  block.querySelector("code").append(text.slice(0, at), el("mark", exact(part)), text.slice(at + exact(part).length));
  return block;
}

function subject(question) {
  const { toolInput: given, toolName: name, diff, cwd } = question;
  const path = given.file_path ?? given.filePath;
  if (diff) return diffView({ path: path ?? "", rows: parse(diff), text: diff }, cwd);
  if (typeof given.command === "string") return marked(given.command, question.part);
  const change = changeOf({ name, args: given });
  return change ? diffView(change, cwd) : code(exact(pretty(given)), "json");
}

function permission(question, answer) {
  const given = question.toolInput;
  const isCommand = typeof given.command === "string";
  const words = el("input", { type: "text", class: "reply", placeholder: "Why not, and what instead (optional)", "aria-label": "What the model is told with a no" });
  const edited = el("textarea.reply", { rows: 3, spellcheck: "false", "aria-label": isCommand ? "The command to run instead" : "The input to use instead" });
  edited.value = isCommand ? given.command : pretty(given);
  const problem = el("p.fault", { role: "alert" });
  const run = () => {
    try {
      const updatedInput = isCommand ? { ...given, command: edited.value } : JSON.parse(edited.value);
      answer({ allow: true, updatedInput });
    } catch (error) {
      problem.textContent = `That is not JSON: ${error.message}`;
    }
  };
  const editing = el("div.extra", { hidden: true }, edited, problem, el("button", { type: "button", class: "act main", onclick: run }, "Run this instead"));
  const no = () => answer(words.value.trim() ? { allow: false, message: words.value.trim() } : false);
  words.addEventListener("keydown", (event) => event.key === "Enter" && no());
  const always = question.rule && [
    el("p.rule", "Always saves the rule ", el("code", exact(question.rule))),
    act("a", "Always, this session", () => answer("allow-session")),
    act("p", "Always, this project", () => answer("allow-project")),
  ];
  const edit = () => ((editing.hidden = false), edited.focus());
  const who = question.agentId ? ` for agent ${oneLine(question.agentId, 40)}` : "";
  return {
    title: `Allow ${oneLine(question.toolName, 60)}${who}?`,
    body: [
      el("p.why", el("span", plain(relative(question.reason, "")) || "No rule decides it."), el("span.where", `in ${exact(question.cwd)}`)),
      subject(question),
      always?.[0],
      editing,
    ],
    actions: [act("y", "Allow once", () => answer(true), "main"), always?.[1], always?.[2], act("n", "Refuse", no, "no"), act("e", "Edit", edit), words],
  };
}

function choice(question, answer) {
  const many = question.multiSelect;
  const options = (question.options || []).map((option, at) => {
    const input = el("input", { type: many ? "checkbox" : "radio", name: `choice-${question.id}`, value: at });
    return { input, option, node: el("label.option", input, el("span", exact(option.label), option.description ? el("small", exact(option.description)) : null), at < 9 ? key(at + 1) : null) };
  });
  const free = question.allowFreeText !== false || !options.length;
  const words = free && el("input", { type: "text", class: "reply", placeholder: "Your own words", "aria-label": "Your own words" });
  const send = () => {
    const chosen = options.filter(({ input }) => input.checked).map(({ option }) => option.label);
    if (words?.value.trim()) chosen.push(words.value.trim());
    if (chosen.length) answer({ chosen });
  };
  words && words.addEventListener("keydown", (event) => event.key === "Enter" && send());
  return {
    title: exact(question.question),
    body: [question.header ? el("p.why", exact(question.header)) : null, el("div.options", { role: "group", "aria-label": exact(question.question) }, options.map(({ node }) => node)), words],
    actions: [act("y", "Answer", send, "main"), act("n", "Do not answer", () => answer({ chosen: [], dismissed: true }))],
    digit: (number) => {
      const picked = options[number - 1]?.input;
      if (!picked) return;
      picked.checked = many ? !picked.checked : true;
      if (!many) send();
    },
  };
}

function plan(question, answer) {
  const words = el("input", { type: "text", class: "reply", placeholder: "What to change, or what to mind", "aria-label": "Feedback on the plan" });
  const said = () => (words.value.trim() ? { feedback: words.value.trim() } : {});
  return {
    title: "Go to work on this plan?",
    body: [el("div.prose.plan-text", { tabindex: "0", role: "region", "aria-label": "Plan" }, renderAll(question.plan)), question.planFilePath ? el("p.why", exact(question.planFilePath)) : null, words],
    actions: [act("y", "Approve", () => answer({ approve: true, ...said() }), "main"), act("a", "Approve, edits without asking", () => answer({ approve: true, mode: "acceptEdits", ...said() })), act("n", "Send back", () => answer({ approve: false, ...said() }), "no")],
  };
}

function field(name, schema, required) {
  const label = oneLine(schema.title || name, 80);
  const of = (tag, props, ...more) => el(tag, { class: "reply", required, ...props }, ...more);
  if (schema.type === "boolean") {
    const box = el("input", { type: "checkbox", ...(schema.default ? { checked: true } : {}) });
    return { node: el("label.option", box, label), read: () => box.checked };
  }
  const values = schema.enum || schema.oneOf?.map((each) => each.const);
  const input = values
    ? of("select", null, values.map((value, at) => el("option", { value }, oneLine(schema.enumNames?.[at] ?? schema.oneOf?.[at]?.title ?? value, 80))))
    : of("input", { type: /number|integer/.test(schema.type) ? "number" : schema.format === "email" ? "email" : "text", step: schema.type === "integer" ? 1 : "any" });
  if (schema.default !== undefined) input.value = schema.default;
  const read = () => (input.value === "" ? undefined : /number|integer/.test(schema.type) ? Number(input.value) : input.value);
  return { node: el("label.field", el("span", label, schema.description ? el("small", exact(schema.description)) : null), input), read };
}

function form(question, answer) {
  const { properties = {}, required = [] } = question.schema || {};
  const fields = Object.entries(properties).map(([name, schema]) => [name, field(name, schema || {}, required.includes(name))]);
  const content = () => Object.fromEntries(fields.map(([name, { read }]) => [name, read()]).filter(([, value]) => value !== undefined));
  const body = el("form.options", { onsubmit: (event) => event.preventDefault() }, fields.map(([, { node }]) => node));
  const send = () => body.reportValidity() && answer({ action: "accept", content: content() });
  return {
    title: exact(question.message),
    body: [question.server ? el("p.why", `Asked by ${oneLine(question.server, 80)}`) : null, body],
    actions: [act("y", "Send", send, "main"), act("n", "Decline", () => answer({ action: "decline" }), "no")],
  };
}

const KINDS = { permission, choice, plan, form };

export class QuestionCard {
  constructor(root, answer) {
    Object.assign(this, { root, answer, id: "", gone: 0 });
    root.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, summary")) return;
    if (event.key >= "1" && event.key <= "9") this.made?.digit?.(Number(event.key));
    const found = this.root.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!found) return;
    event.preventDefault();
    found.click();
  }

  show(questions, closed, live) {
    const [question] = questions.values();
    if (!question) return this.leave(closed, live);
    const shown = `${question.id} ${live} ${questions.size}`;
    if (shown === this.shown) return;
    const fresh = question.id !== this.id;
    this.shown = shown;
    this.id = question.id;
    clearTimeout(this.gone);
    this.made = (KINDS[question.kind] || choice)(question, (given) => this.answer(question, given));
    const rest = questions.size > 1 ? el("span.dim", `1 of ${questions.size}`) : null;
    const actions = live ? el("div.actions", this.made.actions.filter(Boolean)) : el("p.dim", "As it was asked then.");
    this.root.replaceChildren(el("div.card-head", el("span.shape.asks"), el("h2", this.made.title), rest), el("div.card-body", this.made.body.filter(Boolean)), actions);
    this.root.hidden = false;
    this.root.setAttribute("aria-label", this.made.title);
    if (!fresh || !live) return;
    say(`Question: ${this.made.title}`);
    // Who is typing goes on typing; everybody else can answer with a key.
    const busy = document.activeElement;
    if (!busy || busy === document.body || !busy.matches("input, select, textarea:not(:placeholder-shown)")) this.root.focus({ preventScroll: true });
  }

  leave(closed, live) {
    if (!this.id) return;
    const had = this.root.contains(document.activeElement);
    const elsewhere = live && closed?.question.id === this.id && this.answered !== this.id;
    this.id = this.shown = "";
    const hide = () => {
      this.root.hidden = true;
      this.root.replaceChildren();
    };
    if (had) document.getElementById("prompt").focus({ preventScroll: true });
    if (!elsewhere) return hide();
    const words = closed.question.kind === "permission" ? decisionText(closed) : closed.by ? `Answered by ${oneLine(closed.by, 60)}.` : "Answered elsewhere.";
    this.root.replaceChildren(el("div.card-head", icon("ok"), el("h2", words)));
    this.gone = setTimeout(hide, 3000);
  }
}
