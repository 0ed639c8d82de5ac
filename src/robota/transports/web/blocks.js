// A view for each kind of block: an element, and an `update` that says whether it needs more steps.

import {AnswerView, ThoughtView} from "./answer.js"
import {copy, copyButton, el, icon, more} from "./dom.js"
import {renderAll} from "./markdown.js"
import {agentName, exact, many, oneLine, plain} from "./text.js"
import {decisionText, mark, ToolsView} from "./tools.js"

const LONG = 900

const still = build =>
	class {
		constructor(block) {
			this.el = build(block)
		}

		update() {}
	}

const folded = (kind, title, text) => el(`details.${kind}`, el("summary", el("span", title)), el("div.prose", renderAll(text)))

class Prompt {
	images = el("div.images")

	constructor({text: given}, {pictures}) {
		const text = exact(given)
		const words = el("div.words", text.slice(0, LONG))
		const rest = text.length > LONG && more(`Show all ${text.length.toLocaleString("en")} characters`, () => (words.textContent = text))
		this.pictures = pictures
		this.el = el("div.prompt", {role: "article", "aria-label": "Prompt"}, words, rest, this.images, copyButton(() => given, "Copy prompt"))
	}

	update({seq}) {
		for (const load of this.pictures.get(seq)?.slice(this.images.children.length) || []) {
			const label = `Image ${this.images.children.length + 1}`
			const image = el("img", {alt: label})
			this.images.append(el("button.thumb", {title: label, onclick: event => event.currentTarget.classList.toggle("large")}, image))
			load().then(url => (image.src = url))
		}
	}
}

const Notice = still(({tone, text}) => el(`div.notice.${tone}`, plain(text)))

const FIXES = [
	[/auth|key|401|credential/i, "robota setup asks for the key again."],
	[/rate|429|overload|quota/i, "Wait a little and send “go on”."],
	[/context|window|too long/i, "/compact makes room, /clear starts anew."],
	[/network|connect|timeout|unreachable/i, "Nothing is lost: check the connection and send “go on”."],
	[/./, "Send “go on” to try again; /doctor shows what does not work."]
]

const Failure = still(({text, code}) => {
	const [, fix] = FIXES.find(([known]) => known.test(`${code} ${text}`))
	return el("div.error", {role: "alert"}, icon("warn"), el("div", el("p", plain(text)), el("p.fix", fix)), el("code.dim", oneLine(code, 60)))
})

const Compact = still(({trigger, before, after, summary}) => folded("compact", `Summarised ${trigger === "manual" ? "by hand" : "to make room"}: ${before.toFixed(0)} % → ${after.toFixed(0)} % of the window`, summary || "No summary was kept."))

function decided({question, answer, reason, by}) {
	const who = by ? ` by ${oneLine(by, 60)}` : ""
	if (reason !== "answered") return decisionText({reason})
	if (question.kind === "plan") return `${answer?.approve ? "Plan approved" : "Plan sent back"}${who}${answer?.feedback ? `: ${exact(answer.feedback)}` : "."}`
	if (question.kind === "choice") return answer?.dismissed ? `No answer${who}.` : (answer?.chosen || []).map(exact).join(", ")
	return `${{accept: "Filled in", decline: "Declined"}[answer?.action] || "Cancelled"}${who}.`
}

const Decision = still(block => {
	const {question, message, plan} = block.question
	return el("div.decision", el("div.dim", exact(question ?? message ?? "")), plan && folded("plan", "Plan", plan), icon("ok"), el("span", decided(block)))
})

class Lane {
	views = []
	title = el("span.name")
	calls = el("span.time")
	end = el("span")
	body = el("div.lane-body")
	el = el("details.lane", {open: true}, el("summary", icon("agent"), this.title, el("span.about"), this.calls, this.end), this.body)

	constructor(block, context) {
		this.context = {...context, announce: null}
	}

	update({inside, agent}) {
		this.title.textContent = agentName(inside.name || agent)
		this.calls.textContent = many(inside.calls.size, "call")
		const state = inside.outcome ? (inside.outcome === "failed" ? "error" : "success") : "running"
		if (this.state !== state) this.end.replaceChildren(mark((this.state = state)))
		let unfinished = false
		inside.blocks.forEach((block, at) => {
			const known = this.views[at]
			const view = (this.views[at] ??= makeView(block, this.context))
			if (!known) this.body.append(view.el)
			if (!known || view.unfinished || inside.changed.has(block)) view.unfinished = view.update(block)
			unfinished ||= view.unfinished
		})
		inside.changed.clear()
		return unfinished
	}
}

const VIEWS = {prompt: Prompt, answer: AnswerView, thinking: ThoughtView, tools: ToolsView, notice: Notice, error: Failure, compact: Compact, decision: Decision, lane: Lane}

export function makeView(block, context) {
	const view = new VIEWS[block.kind](block, context)
	const href = context.address(block.seq)
	const onclick = event => {
		event.preventDefault()
		copy(location.origin + href)
		history.replaceState(null, "", href)
	}
	const label = `Copy the address of event ${block.seq}`
	return {el: el(`div.block.${block.kind}-block`, {"data-seq": block.seq}, view.el, el("a.anchor", {href, onclick, title: label, "aria-label": label}, icon("link"))), update: each => view.update(each)}
}
