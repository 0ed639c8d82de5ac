// Views: `update` says whether it needs more steps.

import {changeOf, counts, diffView} from "./diff.js"
import {copy, copyButton, el, fill, framed, halt, icon, image, more, region, remember, silent, svg} from "./dom.js"
import {code, render, renderAll} from "./markdown.js"
import {makeSplitter} from "./splitter.js"
import {about, agentName, byWhom, exact, many, oneLine, output, plain, pretty, relative, seconds} from "./text.js"

// Finished pieces are drawn once, the rest goes to one text node.
const FED = 3000 // characters in one step
const PIECES = 20 // of a part: those out of sight are not laid out

function answer(_, {announce}) {
	const splitter = makeSplitter()
	let part = el("div.prose")
	const root = el("div.answer", part)
	let fed = 0
	let tail = null
	let shown, node, copied

	function give(piece) {
		const made = render(piece)
		if (piece.kind === "code") {
			if (!piece.more) {
				const parts = (copied = [])
				made.copied = () => parts.join("\n")
			}
			copied?.push(piece.text)
			made.classList.toggle("open", piece.open)
		}
		if (part.children.length > PIECES && !piece.more) root.append((part = el("div.prose", tail)))
		part.insertBefore(made, tail)
		announce?.(made.textContent)
	}

	function drawTail(anew, added) {
		const {kind, text, language, more} = splitter.tail()
		if (!anew && tail && kind === shown) return added && node.appendData(plain(added))
		tail?.remove()
		tail = null
		shown = kind
		if (!kind) return
		node = document.createTextNode(plain(text))
		if (kind === "code") {
			tail = code("", language, more)
			tail.querySelector("code").append(node)
		} else tail = el(kind === "heading" ? "h4.tail" : "p.tail", node)
		part.append(tail)
	}

	function update({parts, done, broken}) {
		const from = fed
		for (let size = 0; fed < parts.length && size < FED;) size += parts[fed++].length
		const text = parts.slice(from, fed).join("")
		const pieces = text ? splitter.feed(text) : []
		const all = fed === parts.length
		if (done && all) pieces.push(...splitter.finish())
		pieces.forEach(give)
		drawTail(pieces.length > 0, text)
		root.classList.toggle("broken", !!broken)
		return !all
	}

	return {el: root, update}
}

function thinking({parts}) {
	const words = el("div.thought")
	const title = el("span")
	let fed = 0

	function write() {
		if (!root.open) return
		words.append(plain(parts.slice(fed).join("")))
		fed = parts.length
	}

	function update({done}) {
		const size = Math.ceil(parts.reduce((sum, part) => sum + part.length, 0) / 6)
		title.textContent = done ? `Thought for ${size} words` : "Thinking"
		root.classList.toggle("busy", !done)
		write()
	}

	const root = el("details.thinking", {ontoggle: write}, el("summary.fold", title), words)
	return {el: root, update}
}

const ICONS = {file: /Read/, pencil: /Edit|Write$/, terminal: /Bash/, search: /^(Grep|Glob|LS)$/, agent: /^(Task|Agent)$/, list: /Todo|Skill/}
const MARKS = {success: ["ok", "done"], error: ["warn", "failed"], denied: ["no", "denied"]}
const SHOWN = 30_000
const LINES = 200

const toolIcon = name => icon(name === "TodoWrite" ? "list" : Object.keys(ICONS).find(key => ICONS[key].test(name)) || "tool")

export const mark = state => (MARKS[state] ? el(`.mark.${state}`, icon(...MARKS[state])) : el(".spin", image("running")))

function bar(call, span) {
	const scale = 48 / (span || 1)
	const x = Math.min(call.begin * scale, 46)
	const width = Math.max(2, Math.min((call.duration ?? span) * scale, 48 - x))
	return svg("svg.bar", {viewBox: "0 0 48 4", ...silent}, svg("rect.track", {width: 48, height: 4, rx: 2}), svg("rect.ran", {x, width, height: 4, rx: 2}))
}

function lines(text, label) {
	const shown = output(text).replace(/\n+$/, "")
	const all = shown.split("\n")
	const cut = all.length > LINES || shown.length > SHOWN
	const body = region("pre", label, cut ? all.slice(0, LINES).join("\n").slice(0, SHOWN) : shown)
	const rest = cut && more(`Show all ${all.length.toLocaleString("en")} lines`, () => (body.textContent = shown))
	return framed(el("span", label), () => text, label, body, rest)
}

function inputView({args}, cwd) {
	if (typeof args.command === "string") return [args.description && el("p.dim", oneLine(args.description, 400)), code(exact(args.command), "bash")]
	const rows = Object.entries(args).filter(([, value]) => value !== null)
	return [rows.length > 0 && el("dl", rows.flatMap(([name, value]) => [el("dt", oneLine(name)), el("dd", exact(relative(pretty(value), cwd)).slice(0, 4000))]))]
}

const SCOPES = {session: "for this session", project: "for this project"}

export function decisionText({answer, by, reason}) {
	if (reason !== "answered") return reason === "aborted" ? "Nobody answered: it was stopped." : "Nobody was there to answer."
	if (!answer?.allow) return `Refused${byWhom(by)}${answer?.message ? `: ${exact(answer.message)}` : "."}`
	return `Allowed ${SCOPES[answer.scope] || "once"}${byWhom(by)}${answer.updatedInput ? ", with a changed input" : ""}.`
}

function resultView(call, cwd) {
	const {state, content, error, progress} = call
	const change = /success|running/.test(state) && changeOf(call)
	const note = call.metadata?.sandboxNote
	return [
		...(change ? [diffView(change, cwd)] : inputView(call, cwd)),
		call.decision && el("p.dim", decisionText(call.decision)),
		state === "running" && progress.length > 0 && lines(progress.join("\n"), "Output so far"),
		state !== "success" && error && lines(error, "Error"),
		content && !change && content !== error && lines(content, "Output"),
		note && el("p.dim", exact(note))
	]
}

function callView({id}, {opened, cwd}) {
	const body = el("div.call-body")
	const head = el("summary.line-head")
	let call, key, filled

	function open() {
		if (!root.open || filled === key) return
		filled = key
		fill(body, resultView(call, cwd()))
	}

	function update(given, span) {
		call = given
		const {state, asks, progress, duration, name} = call
		const now = `${state} ${asks} ${progress.length} ${span}`
		if (now === key) return
		key = now
		const change = state === "success" && changeOf(call)
		const live = state === "running" && progress.at(-1)
		root.dataset.state = asks ? "asks" : state
		fill(
			head,
			toolIcon(name),
			el(".name", oneLine(name)),
			el(".about", about(call, cwd())),
			change && counts(change),
			span !== null && bar(call, span),
			el(".time", duration === undefined ? asks && "asks" : seconds(duration)),
			asks ? el(".shape.asks") : mark(state),
			live && el(".progress", oneLine(output(live).trim().split("\n").pop(), 200))
		)
		open()
	}

	const root = el("details.call", {open: opened.has(id), ontoggle: () => (remember(opened, id, root.open), open())}, head, body)
	return {el: root, update}
}

function tools(_, context) {
	const views = []
	const title = el("div.group-head")
	const root = el("div.tools")

	function update({calls}) {
		const several = calls.length > 1
		const span = several ? Math.max(...calls.map(({begin, duration = 0}) => begin + duration)) : null
		if (several) {
			const running = calls.filter(({state}) => state === "running").length
			title.textContent = `${calls.length} calls${running ? `, ${running} running` : ` in ${seconds(span)}`}`
			root.classList.add("many")
			root.prepend(title)
		}
		calls.forEach((call, at) => {
			if (!views[at]) root.append((views[at] = callView(call, context)).el)
			views[at].update(call, span)
		})
	}

	return {el: root, update}
}

const LONG = 900

const still = build => block => ({el: build(block), update() {}})

const folded = (kind, title, text) => el(`details.${kind}`, el("summary.fold", el("span", title)), el("div.prose", renderAll(text)))

function prompt({text: given}, {pictures}) {
	const text = exact(given)
	const words = el("div.words", text.slice(0, LONG))
	const rest = text.length > LONG && more(`Show all ${text.length.toLocaleString("en")} characters`, () => (words.textContent = text))
	const images = el("div.images")
	const update = ({seq}) => {
		for (const load of pictures.get(seq)?.slice(images.children.length) || []) {
			const title = `Image ${images.children.length + 1}`
			const image = el("img", {alt: title})
			images.append(el("button.thumb", {title, onclick: event => event.currentTarget.classList.toggle("large")}, image))
			load().then(url => (image.src = url))
		}
	}
	return {el: el("div.prompt", {role: "article", label: "Prompt"}, words, rest, images, copyButton(() => given, "prompt")), update}
}

const notice = still(({tone, text}) => el(`div.notice.${tone}`, plain(text)))

const FIXES = [
	[/auth|key|401|credential/i, "robota setup asks for the key again."],
	[/rate|429|overload|quota/i, "Wait a little and send “go on”."],
	[/context|window|too long/i, "/compact makes room, /clear starts anew."],
	[/network|connect|timeout|unreachable/i, "Nothing is lost: check the connection and send “go on”."],
	[/./, "Send “go on” to try again; /doctor shows what does not work."]
]

const error = still(({text, code}) => {
	const [, fix] = FIXES.find(([known]) => known.test(`${code} ${text}`))
	return el("div.alarm", {role: "alert"}, icon("warn"), el("div", el("p", plain(text)), el("p.fix", fix)), el("code.dim", oneLine(code)))
})

const compact = still(({trigger, before, after, summary}) => folded("compact", `Summarised ${trigger === "manual" ? "by hand" : "to make room"}: ${before.toFixed(0)} % → ${after.toFixed(0)} % of the window`, summary || "No summary was kept."))

function decided({question, answer, reason, by}) {
	const who = byWhom(by)
	if (reason !== "answered") return decisionText({reason})
	if (question.kind === "plan") return `${answer?.approve ? "Plan approved" : "Plan sent back"}${who}${answer?.feedback ? `: ${exact(answer.feedback)}` : "."}`
	if (question.kind === "choice") return answer?.dismissed ? `No answer${who}.` : (answer?.chosen || []).map(exact).join(", ")
	return `${{accept: "Filled in", decline: "Declined"}[answer?.action] || "Cancelled"}${who}.`
}

const decision = still(block => {
	const {question, message, plan} = block.question
	return el("div.decision", el("div.dim", exact(question ?? message ?? "")), plan && folded("plan", "Plan", plan), icon("ok"), el("span", decided(block)))
})

function lane(_, given) {
	const context = {...given, announce: null}
	const views = []
	const [title, calls, end, body] = [el(".name"), el(".time"), el("span"), el("div.lane-body")]
	let shown

	function update({inside, agent}) {
		title.textContent = agentName(inside.name || agent)
		calls.textContent = many(inside.calls.size, "call")
		const state = inside.outcome ? (inside.outcome === "failed" ? "error" : "success") : "running"
		if (shown !== state) fill(end, mark((shown = state)))
		inside.blocks.forEach((block, at) => {
			const known = views[at]
			const view = (views[at] ??= makeView(block, context))
			if (!known) body.append(view.el)
			if (!known || view.unfinished || inside.changed.has(block)) view.unfinished = view.update(block)
		})
		inside.changed.clear()
		return views.some(view => view.unfinished)
	}

	return {el: el("details.lane", {open: true}, el("summary.line-head", icon("agent"), title, el(".about"), calls, end), body), update}
}

const VIEWS = {prompt, answer, thinking, tools, notice, error, compact, decision, lane}

export function makeView(block, context) {
	const {kind, seq} = block
	const {el: shown, update} = VIEWS[kind](block, context)
	const href = context.address(seq)
	const onclick = event => {
		halt(event)
		copy(location.origin + href)
		history.replaceState(null, "", href)
	}
	const anchor = el("a.anchor", {href, onclick, title: `Copy the address of event ${seq}`}, icon("link"))
	return {el: el(`div.block.${kind}-block`, {"data-seq": seq}, shown, anchor), update}
}
