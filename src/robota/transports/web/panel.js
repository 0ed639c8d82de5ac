// The right side: what fills the window, what it costs, which files changed, what is to be done. Drawn of the events.

import { counts, diffView } from "./diff.js";
import { $, el, icon, svg } from "./dom.js";
import { count, exact, money, oneLine, relative } from "./text.js";
import { mark } from "./tools.js";

const empty = (words) => el("p.empty", words);
const figure = (value, words) => el("div.figure", el("strong", value), el("span", words));

function contextTab(state, extra) {
  const { context } = state;
  if (!context?.max) return [empty("How full the model's window is shows here after the first prompt.")];
  const share = Math.min(100, (context.used / context.max) * 100);
  const told = extra.context?.parts?.filter((part) => part.tokens > 0) || [];
  const sum = told.reduce((all, part) => all + part.tokens, 0);
  // Parts are estimates; together they are as long as what the window is known to hold.
  const parts = sum ? told.map((part) => ({ ...part, size: (part.tokens / sum) * context.used })) : [{ name: "Used", tokens: context.used, size: context.used }];
  let x = 0;
  const bars = parts.map((part, at) => {
    const width = (part.size / context.max) * 100;
    const rect = svg("rect", { class: `part p${at % 6}`, x, width: Math.max(width, 0.4), height: 10 }, svg("title", `${part.name}: ${count(part.tokens)}`));
    x += width;
    return rect;
  });
  const legend = parts.map((part, at) => el("li", el("span", { class: `dot p${at % 6}` }), el("span.grow", oneLine(part.name, 60)), el("span.no", count(part.tokens))));
  return [
    el("div.figures", figure(`${share.toFixed(share < 10 ? 1 : 0)} %`, "of the window"), figure(count(context.used), `of ${count(context.max)} tokens`)),
    svg("svg.stack", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `${share.toFixed(0)} percent of the window is used` }, svg("rect.track", { width: 100, height: 10 }), bars),
    el("ul.legend", legend, el("li", el("span.dot"), el("span.grow", "Free"), el("span.no", count(context.max - context.used)))),
    state.fills.length > 1 ? el("div.chart", el("h3", "Over time"), line(state.fills.map((each) => each.used), context.max)) : null,
  ];
}

function line(values, most) {
  const top = Math.max(...values, 1) * 1.1;
  const height = Math.min(top, most || top);
  const at = (value, index) => `${(index / Math.max(1, values.length - 1)) * 100},${40 - (value / height) * 38}`;
  const points = values.map(at).join(" ");
  return svg("svg.line", { viewBox: "0 0 100 40", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polygon", { points: `0,40 ${points} 100,40` }), svg("polyline", { points }));
}

function costTab(state, extra) {
  const rounds = extra.usage?.rounds?.length ? extra.usage.rounds : state.runs;
  if (!rounds.length) return [empty("Tokens and money of each turn show here when the first one has ended.")];
  const of = (name) => rounds.reduce((sum, round) => sum + (round[name] || 0), 0);
  const cost = extra.usage?.costUsd ?? null;
  const most = Math.max(...rounds.map((round) => (round.inputTokens || 0) + (round.outputTokens || 0)), 1);
  const width = 100 / Math.max(rounds.length, 8);
  const bars = rounds.flatMap((round, at) => {
    const [input, cached, out] = [round.inputTokens || 0, Math.min(round.cacheReadTokens || 0, round.inputTokens || 0), round.outputTokens || 0];
    const high = (value) => (value / most) * 56;
    const rect = (kind, from, value) => svg("rect", { class: kind, x: at * width + width * 0.15, width: width * 0.7, y: 58 - high(from + value), height: Math.max(0, high(value)) });
    return [rect("cached", 0, cached), rect("input", cached, input - cached), rect("out", input, out)];
  });
  const kinds = [["cached", "From the cache", of("cacheReadTokens")], ["input", "New input", of("inputTokens") - of("cacheReadTokens")], ["out", "Output", of("outputTokens")]];
  return [
    el("div.figures", cost !== null ? figure(money(cost), "so far") : figure(count(of("inputTokens") + of("outputTokens")), "tokens"), figure(of("inputTokens") ? `${Math.round((of("cacheReadTokens") / of("inputTokens")) * 100)} %` : "0 %", "from the cache")),
    svg("svg.columns", { viewBox: "0 0 100 60", preserveAspectRatio: "none", role: "img", "aria-label": `Tokens of ${rounds.length} ${extra.usage?.rounds?.length ? "rounds" : "turns"}` }, bars),
    el("ul.legend", kinds.map(([kind, name, value]) => el("li", el("span", { class: `dot ${kind}` }), el("span.grow", name), el("span.no", count(value))))),
    rounds.some((round) => round.costUsd) ? el("div.chart", el("h3", "Money per round"), line(rounds.map((round) => round.costUsd || 0))) : null,
  ];
}

function filesTab(state, extra) {
  if (!state.files.size) return [empty("Files that this session changes are listed here, each with its diff.")];
  const rows = [...state.files.values()].map((file) => {
    const body = el("div");
    const row = el("details.changed", el("summary", icon("chevron"), el("span.path", { title: exact(file.path) }, exact(relative(file.path, extra.cwd))), counts(file.added, file.removed)), body);
    row.open = extra.opened.has(file.path);
    const fill = () => row.open && !body.children.length && body.append(...file.changes.map(({ change }) => diffView(change, extra.cwd)));
    row.addEventListener("toggle", () => (extra.opened[row.open ? "add" : "delete"](file.path), fill()));
    fill();
    return row;
  });
  const sum = (name) => [...state.files.values()].reduce((all, file) => all + file[name], 0);
  return [el("div.figures", figure(state.files.size, state.files.size === 1 ? "file changed" : "files changed"), el("div.figure", counts(sum("added"), sum("removed")))), ...rows];
}

const TODO = { completed: ["ok", "done"], in_progress: ["clock", "in progress"], pending: ["", "to do"] };
const RAN = { completed: "success", failed: "error", cancelled: "denied" };

function tasksTab(state) {
  const todos = state.todos.map((todo) => {
    const [name, said] = TODO[todo.status] || TODO.pending;
    return el("li", { class: `todo ${todo.status}` }, el("span.tick", { role: "img", "aria-label": said }, name ? icon(name) : null), el("span", exact(todo.content)));
  });
  const tasks = [...state.tasks.values()].map((task) => {
    const label = oneLine(task.label || task.command || task.agentType || task.prompt || task.taskId, 100);
    const below = oneLine(task.error?.message || task.doing || task.result || "", 120);
    return el("li.task", mark(RAN[task.state] || "running"), el("span.grow", el("span", label), below ? el("small", below) : null));
  });
  const lanes = [...state.lanes.values()].map(({ inside, agent }) => el("li.task", mark(inside.running ? "running" : inside.outcome === "failed" ? "error" : "success"), el("span.grow", el("span", oneLine(inside.name || agent, 60)), el("small", `${inside.calls.size} calls`))));
  const part = (title, items, note) => (items.length ? el("section", el("h3", title, note ? el("span.no", note) : null), el("ul.tasks", items)) : null);
  const done = state.todos.filter((todo) => todo.status === "completed").length;
  const parts = [part("To do", todos, `${done} of ${todos.length}`), part("In the background", tasks), part("Subagents", lanes)].filter(Boolean);
  return parts.length ? parts : [empty("The model's list of what is to do, background tasks and subagents show here.")];
}

const TABS = { context: contextTab, cost: costTab, files: filesTab, tasks: tasksTab };

export class Panel {
  constructor(onopen) {
    this.onopen = onopen;
    this.tab = "context";
    this.tabs = [...document.querySelectorAll("[role=tab]")];
    for (const tab of this.tabs) {
      tab.prepend(icon(tab.dataset.icon));
      tab.addEventListener("click", () => this.open(tab.dataset.tab));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const seen = this.tabs.filter((each) => each.offsetParent);
        if (step) seen[(seen.indexOf(tab) + step + seen.length) % seen.length].focus();
      });
    }
  }

  open(name) {
    this.tab = name;
    document.body.dataset.tab = name;
    const shown = name === "chat" ? "context" : name;
    for (const tab of this.tabs) tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
    $("panel-body").setAttribute("aria-labelledby", `tab-${shown}`);
    this.drawn = 0;
    this.onopen(name);
  }

  draw(state, extra) {
    const name = this.tab === "chat" ? "context" : this.tab;
    $("badge").textContent = state.files.size || "";
    const body = $("panel-body");
    const top = body.scrollTop;
    body.replaceChildren(...TABS[name](state, extra).filter(Boolean));
    body.scrollTop = top;
  }
}
