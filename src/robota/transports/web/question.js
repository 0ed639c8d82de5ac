// The open question. Its keys count only while the card itself has the focus.

import {diffView, parse} from "./diff.js"
import {$, el, icon, region, say} from "./dom.js"
import {code, renderAll} from "./markdown.js"
import {exact, oneLine, plain, pretty} from "./text.js"
import {decisionText} from "./tools.js"

const key = letter => el("kbd", {"aria-hidden": "true"}, letter)
const act = (letter, label, onclick, kind = "plain") => el(`button.act.${kind}`, {"data-key": letter, onclick}, label, key(letter))

function words(placeholder, send) {
	return el("input.reply", {placeholder, "aria-label": placeholder, onkeydown: event => event.key === "Enter" && send?.()})
}

function marked(command, part) {
	const [text, mark] = [exact(command), exact(part)]
	const at = mark ? text.indexOf(mark) : -1
	if (at < 0 || mark === text) return code(text, "bash")
	const block = code("", "bash")
	block.copied = () => command
	block.querySelector("code").append(text.slice(0, at), el("mark", mark), text.slice(at + mark.length))
	return block
}

function subject({toolInput: args, diff, cwd, part}) {
	if (diff) return diffView({path: args.file_path ?? args.filePath ?? "", rows: parse(diff), text: diff}, cwd)
	if (typeof args.command === "string") return marked(args.command, part)
	return code(exact(pretty(args)), "json")
}

function permission(question, answer) {
	const {toolInput: given, rule} = question
	const isCommand = typeof given.command === "string"
	const no = () => answer(why.value.trim() ? {allow: false, message: why.value.trim()} : false)
	const why = words("Why not, and what instead", no)
	const edited = el("textarea.reply", {rows: 3, spellcheck: "false", "aria-label": "What to run instead"})
	edited.value = isCommand ? given.command : pretty(given)
	const fault = el("p.fault", {role: "alert"})
	const run = () => {
		try {
			answer({allow: true, updatedInput: isCommand ? {...given, command: edited.value} : JSON.parse(edited.value)})
		} catch (error) {
			fault.textContent = `That is not JSON: ${error.message}`
		}
	}
	const editing = el("div.extra", {hidden: true}, edited, fault, el("button.act.main", {onclick: run}, "Run this instead"))
	const edit = () => ((editing.hidden = false), edited.focus())
	return {
		title: `Allow ${oneLine(question.toolName, 60)}${question.agentId ? ` for agent ${oneLine(question.agentId, 40)}` : ""}?`,
		body: [el("p.why", plain(question.reason), el("span.where", `in ${exact(question.cwd)}`)), subject(question), rule && el("p.rule", "Always saves the rule ", el("code", exact(rule))), editing],
		actions: [act("y", "Allow once", () => answer(true), "main"), rule && act("a", "Always, this session", () => answer("allow-session")), rule && act("p", "Always, this project", () => answer("allow-project")), act("n", "Refuse", no, "no"), act("e", "Edit", edit), why]
	}
}

function choice({id, question, header, options: given = [], multiSelect, allowFreeText}, answer) {
	const options = given.map(({label, description}, at) => {
		const input = el("input", {type: multiSelect ? "checkbox" : "radio", name: id})
		return {input, label, node: el("label.option", input, el("span", exact(label), description && el("small", exact(description))), at < 9 && key(at + 1))}
	})
	const send = () => {
		const chosen = options.filter(({input}) => input.checked).map(({label}) => label)
		if (own?.value.trim()) chosen.push(own.value.trim())
		if (chosen.length) answer({chosen})
	}
	const own = allowFreeText !== false || !options.length ? words("Your own words", send) : null
	return {
		title: exact(question),
		body: [header && el("p.why", exact(header)), el("div.options", {role: "group", "aria-label": "Answers"}, options.map(({node}) => node)), own],
		actions: [act("y", "Answer", send, "main"), act("n", "Do not answer", () => answer({chosen: [], dismissed: true}))],
		digit(number) {
			options[number - 1]?.input.click()
			if (!multiSelect) send()
		}
	}
}

function plan({plan: text, planFilePath}, answer) {
	const own = words("What to change, or what to mind")
	const send = fields => answer({...fields, ...(own.value.trim() && {feedback: own.value.trim()})})
	return {
		title: "Go to work on this plan?",
		body: [region("div.prose.plan-text", "Plan", renderAll(text)), planFilePath && el("p.why", exact(planFilePath)), own],
		actions: [act("y", "Approve", () => send({approve: true}), "main"), act("a", "Approve, never ask for edits", () => send({approve: true, mode: "acceptEdits"})), act("n", "Send back", () => send({approve: false}), "no")]
	}
}

function field(name, schema, required) {
	const {type, default: known, enum: values, description} = schema
	const label = oneLine(schema.title || name, 80)
	const number = /number|integer/.test(type)
	if (type === "boolean") {
		const box = el("input", {type: "checkbox", checked: known})
		return {node: el("label.option", box, label), read: () => box.checked}
	}
	const input = values
		? el(
				"select.reply",
				{required},
				values.map(value => el("option", {value}, oneLine(value, 80)))
			)
		: el("input.reply", {required, type: number ? "number" : "text", step: type === "integer" ? 1 : "any"})
	if (known !== undefined) input.value = known
	const read = () => (input.value === "" ? undefined : number ? Number(input.value) : input.value)
	return {node: el("label.field", el("span", label, description && el("small", exact(description))), input), read}
}

function form({message, schema, server}, answer) {
	const {properties = {}, required = []} = schema || {}
	const fields = Object.entries(properties).map(([name, each]) => [name, field(name, each, required.includes(name))])
	const body = el("form.options", {onsubmit: event => event.preventDefault()}, fields.map(([, {node}]) => node))
	const content = () => Object.fromEntries(fields.map(([name, {read}]) => [name, read()]).filter(([, value]) => value !== undefined))
	return {title: exact(message), body: [server && el("p.why", `Asked by ${oneLine(server, 80)}`), body], actions: [act("y", "Send", () => body.reportValidity() && answer({action: "accept", content: content()}), "main"), act("n", "Decline", () => answer({action: "decline"}), "no")]}
}

function trust({lines: [title, ...lines]}, answer) {
	return {
		title: exact(title),
		body: [region("pre.part-text", "What it wants", exact(lines.join("\n")))],
		actions: [act("y", "Trust it", () => answer(true), "main"), act("n", "Go on without", () => answer(false))]
	}
}

const KINDS = {permission, choice, plan, form, trust}

export class QuestionCard {
	root = $("question")
	id = ""

	constructor(answer) {
		this.answer = answer
		this.root.addEventListener("keydown", event => this.press(event))
	}

	press(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return
		if (/^[1-9]$/.test(event.key)) this.made.digit?.(Number(event.key))
		const found = /^[a-z]$/i.test(event.key) && this.root.querySelector(`[data-key=${event.key.toLowerCase()}]`)
		if (!found) return
		event.preventDefault()
		found.click()
	}

	show(questions, closed, live) {
		const [question] = questions.values()
		if (!question) return this.leave(closed, live)
		const shown = `${question.id} ${live} ${questions.size}`
		if (shown === this.shown) return
		const fresh = question.id !== this.id
		Object.assign(this, {shown, id: question.id})
		clearTimeout(this.gone)
		this.made = KINDS[question.kind](question, given => this.answer(question, given))
		const {title, body, actions} = this.made
		this.root.replaceChildren(el("div.card-head", el("span.shape.asks"), el("h2", title), questions.size > 1 && el("span.dim", `1 of ${questions.size}`)), el("div.card-body", body), live ? el("div.actions", actions) : el("p.actions.dim", "As it was asked then."))
		this.root.hidden = false
		this.root.setAttribute("aria-label", title)
		if (!fresh || !live) return
		say(`Question: ${title}`)
		// Who is typing goes on typing; everybody else can answer with a key.
		if (!document.activeElement?.matches("input, select, textarea:not(:placeholder-shown)")) this.root.focus({preventScroll: true})
	}

	leave(closed, live) {
		if (!this.id) return
		const elsewhere = live && closed?.question.id === this.id && this.answered !== this.id
		if (this.root.contains(document.activeElement)) $("prompt").focus({preventScroll: true})
		this.id = this.shown = ""
		const hide = () => (this.root.hidden = true)
		if (!elsewhere) return hide()
		const {question, by} = closed
		const text = question.kind === "permission" ? decisionText(closed) : `Answered${by ? ` by ${oneLine(by, 60)}` : " elsewhere"}.`
		this.root.replaceChildren(el("div.card-head", icon("ok"), el("h2", text)))
		this.gone = setTimeout(hide, 3000)
	}
}
