// Tool calls: one line each, that opens.

import {changeOf, counts, diffView, tally} from "./diff.js"
import {copyButton, el, icon, more, region, svg} from "./dom.js"
import {code} from "./markdown.js"
import {about, exact, oneLine, output, pretty, relative, seconds} from "./text.js"

const ICONS = {file: /Read/, pencil: /Edit|Write$/, terminal: /Bash/, search: /^(Grep|Glob|LS)$/, agent: /^(Task|Agent)$/, list: /Todo|Skill/}
const MARKS = {success: ["ok", "done"], error: ["warn", "failed"], denied: ["no", "denied"]}
const SHOWN = 30_000
const LINES = 200

const toolIcon = name => icon(name === "TodoWrite" ? "list" : Object.keys(ICONS).find(key => ICONS[key].test(name)) || "tool")

export const mark = state => (MARKS[state] ? el(`span.mark.${state}`, icon(...MARKS[state])) : el("span.spin", {role: "img", "aria-label": "running"}))

function bar(call, span) {
	const scale = 48 / (span || 1)
	const x = Math.min(call.begin * scale, 46)
	const width = Math.max(2, Math.min((call.duration ?? span) * scale, 48 - x))
	return svg("svg.bar", {viewBox: "0 0 48 4", "aria-hidden": "true"}, svg("rect.track", {width: 48, height: 4, rx: 2}), svg("rect.ran", {x, width, height: 4, rx: 2}))
}

function lines(text, label) {
	const shown = output(text).replace(/\n+$/, "")
	const all = shown.split("\n")
	const cut = all.length > LINES || shown.length > SHOWN
	const body = region("pre", label, cut ? all.slice(0, LINES).join("\n").slice(0, SHOWN) : shown)
	const rest = cut && more(`Show all ${all.length.toLocaleString("en")} lines`, () => (body.textContent = shown))
	return el("div.code", el("div.code-head", el("span", label), copyButton(() => text, `Copy ${label}`)), body, rest)
}

function inputView({args}, cwd) {
	if (typeof args.command === "string") return [args.description && el("p.dim", oneLine(args.description)), code(exact(args.command), "bash")]
	const rows = Object.entries(args).filter(([, value]) => value !== null)
	return rows.length
		? [
				el("dl", rows.flatMap(([name, value]) => [el("dt", oneLine(name)), el("dd", exact(relative(pretty(value), cwd)).slice(0, 4000))]))
			]
		: []
}

const SCOPES = {once: "once", session: "for this session", project: "for this project"}

export function decisionText({answer, by, reason}) {
	if (reason !== "answered") return reason === "aborted" ? "Nobody answered: it was stopped." : "Nobody was there to answer."
	const who = by ? ` by ${oneLine(by, 60)}` : ""
	if (!answer?.allow) return `Refused${who}${answer?.message ? `: ${exact(answer.message)}` : "."}`
	return `Allowed ${SCOPES[answer.scope || "once"]}${who}${answer.updatedInput ? ", with a changed input" : ""}.`
}

function resultView(call, cwd) {
	const {state, content, error, progress} = call
	const change = /success|running/.test(state) && changeOf(call)
	const parts = change ? [diffView(change, cwd)] : inputView(call, cwd)
	if (call.decision) parts.push(el("p.dim", decisionText(call.decision)))
	if (state === "running" && progress.length) parts.push(lines(progress.join("\n"), "Output so far"))
	if (state !== "success" && error) parts.push(lines(error, "Error"))
	if (content && !change && content !== error) parts.push(lines(content, "Output"))
	if (call.metadata?.sandboxNote) parts.push(el("p.dim", exact(call.metadata.sandboxNote)))
	return parts.filter(Boolean)
}

class CallView {
	body = el("div.call-body")
	head = el("summary")

	constructor(call, {opened, cwd}) {
		this.cwd = cwd
		const ontoggle = () => (opened[this.el.open ? "add" : "delete"](call.id), this.fill())
		this.el = el("details.call", {open: opened.has(call.id), ontoggle}, this.head, this.body)
	}

	fill() {
		if (!this.el.open || this.filled === this.key) return
		this.filled = this.key
		this.body.replaceChildren(...resultView(this.call, this.cwd()))
	}

	update(call, span) {
		const key = `${call.state} ${call.asks} ${call.progress.length} ${span}`
		if (key === this.key) return
		Object.assign(this, {call, key})
		const change = call.state === "success" && changeOf(call)
		const {added, removed} = tally(change ? change.rows : [])
		const live = call.state === "running" && call.progress.at(-1)
		this.el.dataset.state = call.asks ? "asks" : call.state
		this.head.replaceChildren(
			toolIcon(call.name),
			el("span.name", oneLine(call.name, 60)),
			el("span.about", about(call, this.cwd())),
			change ? counts(added, removed) : "",
			span === null ? "" : bar(call, span),
			el("span.time", call.duration === undefined ? (call.asks ? "asks" : "") : seconds(call.duration)),
			call.asks ? el("span.shape.asks") : mark(call.state),
			live ? el("span.progress", oneLine(output(live).trim().split("\n").pop(), 200)) : ""
		)
		this.fill()
	}
}

export class ToolsView {
	views = []
	title = el("div.group-head")
	el = el("div.tools")

	constructor(block, context) {
		this.context = context
	}

	update({calls}) {
		const many = calls.length > 1
		const span = many ? Math.max(...calls.map(call => call.begin + (call.duration || 0))) : null
		if (many) {
			const running = calls.filter(call => call.state === "running").length
			this.title.textContent = `${calls.length} calls${running ? `, ${running} running` : ` in ${seconds(span)}`}`
			this.el.classList.add("many")
			this.el.prepend(this.title)
		}
		calls.forEach((call, at) => {
			if (!this.views[at]) this.el.append((this.views[at] = new CallView(call, this.context)).el)
			this.views[at].update(call, span)
		})
	}
}
