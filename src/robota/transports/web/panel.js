// The right side: context, cost, files, tasks.

import {counts, diffView} from "./diff.js"
import {$, el, icon, region, svg} from "./dom.js"
import {agentName, count, exact, many, money, oneLine, pretty, relative, taskLabel} from "./text.js"
import {mark} from "./tools.js"

const empty = words => [el("p.empty", words)]
const figure = (value, words) => el("div.figure", el("strong", value), el("span", words))
const figures = (...all) => el("div.figures", all)
const drawn = (kind, box, label, ...shapes) => svg(`svg.${kind}`, {viewBox: `0 0 100 ${box}`, preserveAspectRatio: "none", role: "img", "aria-label": label}, ...shapes)
const row = (kind, name, value) => [el(`span.dot.${kind}`), el("span.grow", name), el("span.dim", count(value))]
const legend = rows => el("ul.legend", rows.map(each => el("li", row(...each))))

function line(title, values) {
	const top = Math.max(...values, 1e-9)
	const points = values.map((value, at) => `${(at / Math.max(1, values.length - 1)) * 100},${40 - (value / top) * 36}`).join(" ")
	return el("div.chart", el("h3", title), drawn("line", 40, title, svg("polygon", {points: `0,40 ${points} 100,40`}), svg("polyline", {points})))
}

// What the conversation is made of, since its last summary: about as many tokens as a fourth of its letters.
function spoken(blocks) {
	const sizes = new Map()
	const add = (name, text) => text && sizes.set(name, (sizes.get(name) || 0) + Math.ceil(text.length / 4))
	for (const {kind, text, parts, calls = [], summary} of blocks.slice(Math.max(0, blocks.findLastIndex(({kind}) => kind === "compact")))) {
		if (kind === "prompt") add("Prompts", text)
		if (kind === "answer") add("Answers", parts.join(""))
		add("Summary", summary)
		for (const call of calls) add(oneLine(call.name, 40), pretty(call.args) + (call.content || call.error || ""))
	}
	return legend([...sizes].sort(([, one], [, other]) => other - one).slice(0, 12).map(([name, size]) => ["none", name, size]))
}

function contextTab({context, fills, blocks}, extra) {
	if (!context?.max) return empty("After the first prompt: what fills the window of the model.")
	const {used, max} = context
	const share = (used / max) * 100
	const told = extra.context?.parts?.filter(part => part.tokens > 0) || []
	const parts = told.length ? told.map(({name, tokens}) => ({name: oneLine(name, 60), size: tokens})) : [{name: "Conversation", size: used}]
	const part = ({name, size}, at) => {
		const open = extra.part === name
		const inside = open && (extra.words ? region("pre.part-text", name, exact(extra.words)) : name === "Conversation" && spoken(blocks))
		return el("li", el("button.part-row", {"aria-expanded": String(open), onclick: () => extra.show(name)}, row(`p${at % 8}`, name, size), icon("chevron")), inside)
	}
	let x = 0
	const bars = parts.map(({name, size}, at) => {
		const width = (size / max) * 100
		x += width
		return svg(`rect.part.p${at % 8}`, {x: x - width, width: Math.max(width, 0.4), height: 10, onclick: () => extra.show(name)}, svg("title", name))
	})
	return [
		figures(figure(`${share.toFixed(share < 10 ? 1 : 0)} %`, "of the window"), figure(count(used), `of ${count(max)} tokens`)),
		drawn("stack", 10, `${share.toFixed(0)} percent of the window is used`, svg("rect.track", {width: 100, height: 10}), bars),
		el("ul.legend.parts", parts.map(part), el("li", el("div.part-row", row("free", "Free", Math.max(0, max - used))))),
		fills.length > 2 && line("Over time", fills)
	]
}

function costTab({runs}, {usage}) {
	const rounds = usage?.rounds?.length ? usage.rounds : runs
	const cost = usage?.total?.costUsd
	if (!rounds.length) return empty("After the first answer: tokens and money of each round.")
	const of = name => rounds.reduce((sum, round) => sum + (round[name] || 0), 0)
	const [input, cached, out] = [of("inputTokens"), of("cacheReadTokens"), of("outputTokens")]
	const most = Math.max(...rounds.map(round => round.inputTokens + round.outputTokens), 1)
	const width = 100 / Math.max(rounds.length, 8)
	const bars = rounds.flatMap((round, at) => {
		let y = 58
		const old = Math.min(round.cacheReadTokens || 0, round.inputTokens)
		const words = `${at + 1}: ${count(round.inputTokens)} in, ${count(old)} cached, ${count(round.outputTokens)} out${round.costUsd > 0 ? `, ${money(round.costUsd)}` : ""}`
		return [["cached", old], ["input", round.inputTokens - old], ["out", round.outputTokens]].map(([kind, value]) => {
			const height = (value / most) * 56
			y -= height
			return svg(`rect.${kind}`, {x: (at + 0.15) * width, width: width * 0.7, y, height}, svg("title", words))
		})
	})
	return [
		figures(cost > 0 ? figure(money(cost), "so far") : figure(count(input + out), "tokens"), figure(`${Math.round((cached / (input || 1)) * 100)} %`, "from the cache")),
		el("h3", `Tokens of ${rounds.length} rounds, at most ${count(most)}`),
		drawn("columns", 60, `Tokens of ${rounds.length} rounds`, bars),
		legend([["cached", "From the cache", cached], ["input", "New input", input - cached], ["out", "Output", out]]),
		rounds.filter(round => round.costUsd > 0).length > 1 &&
			line(`Money of each round, at most ${money(Math.max(...rounds.map(round => round.costUsd || 0)))}`, rounds.map(round => round.costUsd || 0))
	]
}

function filesTab({files}, {opened, cwd}) {
	if (!files.size) return empty("Files that the session changes, each with its diff.")
	const all = [...files.values()]
	const sum = name => all.reduce((total, file) => total + file[name], 0)
	const row = ({path, added, removed, changes}) => {
		const body = el("div")
		const fill = () => row.open && !body.children.length && body.append(...changes.map(change => diffView(change, cwd)))
		const ontoggle = () => (opened[row.open ? "add" : "delete"](path), fill())
		const row = el("details.changed", {open: opened.has(path), ontoggle}, el("summary", icon("chevron"), el("span.path", {title: exact(path)}, exact(relative(path, cwd))), counts(added, removed)), body)
		fill()
		return row
	}
	return [figures(figure(files.size, files.size === 1 ? "file changed" : "files changed"), el("div.figure", counts(sum("added"), sum("removed")))), ...all.map(row)]
}

const TODO = {completed: ["ok", "done"], in_progress: ["clock", "in progress"]}
const RAN = {completed: "success", done: "success", interrupted: "denied", failed: "error", cancelled: "denied"}

function tasksTab({todos, tasks, lanes}) {
	const todo = ({status, content}) => {
		const [name, label] = TODO[status] || ["", "to do"]
		return el(`li.todo.${status}`, el("span.tick", {role: "img", "aria-label": label}, name && icon(name)), el("span.grow", exact(content)))
	}
	const task = (state, label, below) => el("li.todo", mark(RAN[state]), el("span.grow", el("span", label), el("small", oneLine(below, 120))))
	const part = (title, items) => items.length && el("section", el("h3", title), el("ul", items))
	const parts = [
		part(`To do · ${todos.filter(({status}) => status === "completed").length} of ${todos.length}`, todos.map(todo)),
		part("In the background", [...tasks.values()].map(each => task(each.state, taskLabel(each), each.error?.message || each.doing || each.result))),
		part("Subagents", [...lanes.values()].map(({inside, agent}) => task(inside.outcome, agentName(inside.name || agent), many(inside.calls.size, "call"))))
	].filter(Boolean)
	return parts.length ? parts : empty("What is to do, background tasks and subagents.")
}

const TABS = {chat: contextTab, context: contextTab, cost: costTab, files: filesTab, tasks: tasksTab}

export class Panel {
	tabs = [...document.querySelectorAll("[role=tab]")]

	constructor(onopen) {
		this.onopen = onopen
		for (const tab of this.tabs) {
			tab.prepend(icon(tab.dataset.icon))
			tab.addEventListener("click", () => this.open(tab.dataset.tab))
			tab.addEventListener("keydown", event => {
				const seen = this.tabs.filter(each => each.offsetParent)
				seen[seen.indexOf(tab) + ({ArrowRight: 1, ArrowLeft: -1}[event.key] || NaN)]?.focus()
			})
		}
		this.open("chat")
	}

	open(name) {
		this.tab = document.body.dataset.tab = name
		for (const tab of this.tabs) (tab.ariaSelected = tab.dataset.tab === name)
		this.onopen()
	}

	draw(state, extra) {
		const body = $("panel-body")
		const stops = () => [...body.querySelectorAll("button, summary")]
		const [top, at] = [body.scrollTop, stops().indexOf(document.activeElement)]
		body.replaceChildren(...TABS[this.tab](state, extra).filter(Boolean))
		body.scrollTop = top
		stops()[at]?.focus({preventScroll: true})
	}
}
