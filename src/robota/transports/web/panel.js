import {counts, diffView} from "./diff.js"
import {$, el, fill, icon, image, moveFocus, region, remember, svg} from "./dom.js"
import {agentName, count, exact, many, money, oneLine, pretty, relative, taskLabel, total} from "./text.js"
import {mark} from "./blocks.js"

const empty = words => [el("p.empty", words)]
const figure = (value, words) => el("div.figure", el("strong", value), el("span", words))
const figures = (...all) => el("div.figures", all)
const drawn = (kind, box, label, ...shapes) => svg(`svg.${kind}`, {viewBox: `0 0 100 ${box}`, preserveAspectRatio: "none", ...image(label)}, ...shapes)
const row = (kind, name, value) => [el(`.dot.${kind}`), el(".grow", name), el(".dim", count(value))]
const legend = rows => el("ul.legend", rows.map(each => el("li", row(...each))))

function line(title, values) {
	const top = Math.max(...values, 1e-9)
	const points = values.map((value, at) => `${(at / Math.max(1, values.length - 1)) * 100},${40 - (value / top) * 36}`).join(" ")
	return el("div.chart", el("h3", title), drawn("line", 40, title, svg("polygon", {points: `0,40 ${points} 100,40`}), svg("polyline", {points})))
}

// The conversation since its last summary: four letters are about one token.
function spoken(blocks) {
	const sizes = {__proto__: null}
	const add = (name, text) => text && (sizes[name] = (sizes[name] || 0) + Math.ceil(text.length / 4))
	for (const {kind, text, parts, calls = [], summary} of blocks.slice(Math.max(0, blocks.findLastIndex(({kind}) => kind === "compact")))) {
		if (kind === "prompt") add("Prompts", text)
		if (kind === "answer") add("Answers", parts.join(""))
		add("Summary", summary)
		for (const call of calls) add(oneLine(call.name), pretty(call.args) + (call.content || call.error || ""))
	}
	return legend(Object.entries(sizes).sort(([, one], [, other]) => other - one).slice(0, 12).map(each => ["none", ...each]))
}

function contextTab({context, fills, blocks}, extra) {
	if (!context?.max) return empty("After the first prompt: what fills the window of the model.")
	const {used, max} = context
	const share = (used / max) * 100
	const told = extra.context?.parts?.filter(part => part.tokens > 0) || []
	const parts = told.length ? told : [{name: "Conversation", tokens: used}]
	let end = 0
	const bars = []
	const rows = parts.map(({name: given, tokens}, at) => {
		const name = oneLine(given)
		const open = extra.part === name
		const onclick = () => extra.show(name)
		const width = (tokens / max) * 100
		bars.push(svg(`rect.part.p${at % 8}`, {x: end, width: Math.max(width, 0.4), height: 10, onclick}, svg("title", name)))
		end += width
		const inside = open && (extra.words ? region("pre.part-text", name, exact(extra.words)) : name === "Conversation" && spoken(blocks))
		return el("li", el("button.part-row", {"aria-expanded": String(open), onclick}, row(`p${at % 8}`, name, tokens), icon("chevron")), inside)
	})
	return [
		figures(figure(`${share.toFixed(share < 10 ? 1 : 0)} %`, "of the window"), figure(count(used), `of ${count(max)} tokens`)),
		drawn("stack", 10, `${share.toFixed(0)} percent of the window is used`, svg("rect.track", {width: 100, height: 10}), bars),
		el("ul.legend.parts", rows, el("li", el("div.part-row", row("free", "Free", Math.max(0, max - used))))),
		fills.length > 2 && line("Over time", fills)
	]
}

function costTab({runs}, {usage}) {
	const rounds = (usage?.rounds?.length ? usage.rounds : runs).map(({inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, costUsd}) => {
		const cached = Math.min(cacheReadTokens, inputTokens)
		return {cached, input: inputTokens - cached, out: outputTokens, paid: costUsd || 0}
	})
	const cost = usage?.total?.costUsd
	if (!rounds.length) return empty("After the first answer: tokens and money of each round.")
	const [cached, input, out] = ["cached", "input", "out"].map(name => total(rounds, name))
	const most = Math.max(...rounds.map(({cached, input, out}) => cached + input + out), 1)
	const width = 100 / Math.max(rounds.length, 8)
	const costs = rounds.map(({paid}) => paid)
	const title = `Tokens of ${rounds.length} rounds`
	const bars = rounds.flatMap(({paid, ...tokens}, at) => {
		let y = 58
		const words = `${at + 1}: ${count(tokens.cached + tokens.input)} in, ${count(tokens.cached)} cached, ${count(tokens.out)} out${paid > 0 ? `, ${money(paid)}` : ""}`
		return Object.entries(tokens).map(([kind, value]) => {
			const height = (value / most) * 56
			y -= height
			return svg(`rect.${kind}`, {x: (at + 0.15) * width, width: width * 0.7, y, height}, svg("title", words))
		})
	})
	return [
		figures(cost > 0 ? figure(money(cost), "so far") : figure(count(cached + input + out), "tokens"), figure(`${Math.round((cached / (cached + input || 1)) * 100)} %`, "from the cache")),
		el("h3", `${title}, at most ${count(most)}`),
		drawn("columns", 60, title, bars),
		legend([["cached", "From the cache", cached], ["input", "New input", input], ["out", "Output", out]]),
		costs.filter(Boolean).length > 1 && line(`Money of each round, at most ${money(Math.max(...costs))}`, costs)
	]
}

function filesTab({files}, {opened, cwd}) {
	if (!files.size) return empty("Files that the session changes, each with its diff.")
	const all = [...files.values()]
	const row = file => {
		const {path, changes} = file
		const body = el("div")
		const open = () => row.open && !body.children.length && body.append(...changes.map(change => diffView(change, cwd)))
		const ontoggle = () => (remember(opened, path, row.open), open())
		const row = el("details.changed", {open: opened.has(path), ontoggle}, el("summary", icon("chevron"), el(".path", {title: exact(path)}, exact(relative(path, cwd))), counts(file)), body)
		open()
		return row
	}
	return [figures(figure(all.length, `file${all.length === 1 ? "" : "s"} changed`), el("div.figure", counts({added: total(all, "added"), removed: total(all, "removed")}))), ...all.map(row)]
}

const TODO = {completed: ["ok", "done"], in_progress: ["clock", "in progress"]}
const RAN = {completed: "success", done: "success", interrupted: "denied", failed: "error", cancelled: "denied"}

function tasksTab({todos, tasks, lanes}) {
	const todo = ({status, content}) => {
		const [name, label] = TODO[status] || ["", "to do"]
		return el(`li.todo.${status}`, el(".tick", image(label), name && icon(name)), el(".grow", exact(content)))
	}
	const task = (state, label, below) => el("li.todo", mark(RAN[state]), el(".grow", el("span", label), el("small", oneLine(below))))
	const part = (title, items) => items.length > 0 && el("section", el("h3", title), el("ul", items))
	const parts = [
		part(`To do · ${todos.filter(({status}) => status === "completed").length} of ${todos.length}`, todos.map(todo)),
		part("In the background", [...tasks.values()].map(each => task(each.state, taskLabel(each), each.error?.message || each.doing || each.result))),
		part("Subagents", [...lanes.values()].map(({inside, agent}) => task(inside.outcome, agentName(inside.name || agent), many(inside.calls.size, "call"))))
	]
	return parts.some(Boolean) ? parts : empty("What is to do, background tasks and subagents.")
}

const TABS = {chat: contextTab, context: contextTab, cost: costTab, files: filesTab, tasks: tasksTab}
const tabs = [...document.querySelectorAll("[role=tab]")]

export let shown

export function start(opened) {
	const open = name => {
		shown = document.body.dataset.tab = name
		for (const tab of tabs) tab.ariaSelected = tab.dataset.tab === name
		opened()
	}
	for (const tab of tabs) {
		tab.addEventListener("click", () => open(tab.dataset.tab))
		tab.addEventListener("keydown", event => moveFocus(event, tabs.filter(each => each.offsetParent), ["ArrowLeft", "ArrowRight"]))
	}
	open("chat")
}

export function draw(state, extra) {
	const body = $("panel-body")
	const stops = () => [...body.querySelectorAll("button, summary")]
	const [top, at] = [body.scrollTop, stops().indexOf(document.activeElement)]
	fill(body, TABS[shown](state, extra))
	body.scrollTop = top
	stops()[at]?.focus({preventScroll: true})
}
