// The open question. Its keys count only while the card has the focus.

import {changeIn, diffView} from "./diff.js"
import {$, el, fill, halt, icon, on, region, say, silent} from "./dom.js"
import {code, renderAll} from "./markdown.js"
import {byWhom, exact, oneLine, plain, pretty} from "./text.js"
import {decisionText} from "./blocks.js"

const key = letter => el("kbd", silent, letter)
const act = (letter, label, onclick, kind = letter === "y" ? "main" : "plain") => el(`button.act.${kind}`, {"data-key": letter, onclick}, label, key(letter))
const named = (label, description) => el("span", exact(label), description && el("small", exact(description)))
const said = ({value}) => value.trim()
const words = (placeholder, send) => el("input.reply", {placeholder, label: placeholder, onkeydown: event => event.key === "Enter" && send?.()})

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
	if (diff) return diffView(changeIn(args.file_path ?? args.filePath ?? "", diff), cwd)
	if (typeof args.command === "string") return marked(args.command, part)
	return code(exact(pretty(args)), "json")
}

function permission(question, answer) {
	const {toolInput: given, rule} = question
	const isCommand = typeof given.command === "string"
	const no = () => answer(said(why) ? {allow: false, message: said(why)} : false)
	const why = words("Why not, and what instead", no)
	const edited = el("textarea.reply", {rows: 3, spellcheck: "false", label: "What to run instead"})
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
		title: `Allow ${oneLine(question.toolName)}${question.agentId ? ` for agent ${oneLine(question.agentId)}` : ""}?`,
		body: [el("p.why", plain(question.reason), el(".where", `in ${exact(question.cwd)}`)), subject(question), rule && el("p.rule", "Always saves the rule ", el("code", exact(rule))), editing],
		actions: [act("y", "Allow once", () => answer(true)), rule && act("a", "Always, this session", () => answer("allow-session")), rule && act("p", "Always, this project", () => answer("allow-project")), act("n", "Refuse", no, "no"), act("e", "Edit", edit), why]
	}
}

function choice({id, question, header, options: given = [], multiSelect, allowFreeText}, answer) {
	const options = given.map(({label, description}, at) => {
		const input = el("input", {type: multiSelect ? "checkbox" : "radio", name: id})
		return {input, label, node: el("label.option", input, named(label, description), at < 9 && key(at + 1))}
	})
	const send = () => {
		const chosen = options.filter(({input}) => input.checked).map(({label}) => label)
		if (own && said(own)) chosen.push(said(own))
		if (chosen.length) answer({chosen})
	}
	const own = allowFreeText !== false || !options.length ? words("Your own words", send) : null
	return {
		title: exact(question),
		body: [header && el("p.why", exact(header)), el("div.options", {role: "group", label: "Answers"}, options.map(({node}) => node)), own],
		actions: [act("y", "Answer", send), act("n", "Do not answer", () => answer({chosen: [], dismissed: true}))],
		digit(number) {
			options[number - 1]?.input.click()
			if (!multiSelect) send()
		}
	}
}

function plan({plan: text, planFilePath}, answer) {
	const own = words("What to change, or what to mind")
	const send = fields => answer({...fields, ...(said(own) && {feedback: said(own)})})
	return {
		title: "Go to work on this plan?",
		body: [region("div.prose.plan-text", "Plan", renderAll(text)), planFilePath && el("p.why", exact(planFilePath)), own],
		actions: [act("y", "Approve", () => send({approve: true})), act("a", "Approve, never ask for edits", () => send({approve: true, mode: "acceptEdits"})), act("n", "Send back", () => send({approve: false}), "no")]
	}
}

function field(name, schema, required) {
	const {type, default: known, enum: values, description} = schema
	const label = oneLine(schema.title || name)
	const number = /number|integer/.test(type)
	if (type === "boolean") {
		const box = el("input", {type: "checkbox", checked: known})
		return {node: el("label.option", box, label), read: () => box.checked}
	}
	const input = values
		? el("select.reply", {required}, values.map(value => el("option", {value}, oneLine(value))))
		: el("input.reply", {required, type: number ? "number" : "text", step: type === "integer" ? 1 : "any"})
	if (known !== undefined) input.value = known
	const read = () => (input.value === "" ? undefined : number ? +input.value : input.value)
	return {node: el("label.field", named(label, description), input), read}
}

function form({message, schema, server}, answer) {
	const {properties = {}, required = []} = schema || {}
	const fields = Object.entries(properties).map(([name, each]) => [name, field(name, each, required.includes(name))])
	const body = el("form.options", {onsubmit: halt}, fields.map(([, {node}]) => node))
	const content = () => Object.fromEntries(fields.map(([name, {read}]) => [name, read()]).filter(([, value]) => value !== undefined))
	return {title: exact(message), body: [server && el("p.why", `Asked by ${oneLine(server)}`), body], actions: [act("y", "Send", () => body.reportValidity() && answer({action: "accept", content: content()})), act("n", "Decline", () => answer({action: "decline"}), "no")]}
}

function trust({lines: [title, ...lines]}, answer) {
	return {
		title: exact(title),
		body: [region("pre.part-text", "What it wants", exact(lines.join("\n")))],
		actions: [act("y", "Trust it", () => answer(true)), act("n", "Go on without", () => answer(false))]
	}
}

const KINDS = {permission, choice, plan, form, trust}

const root = $("question")
let id = ""
let answer, answered, made, shown, gone

export const start = action => (answer = action)

export const answeredHere = given => (answered = given)

on("question", event => {
	const {key, target} = event
	if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select")) return
	if (/^[1-9]$/.test(key)) made.digit?.(+key)
	const found = /^[a-z]$/i.test(key) && root.querySelector(`[data-key=${key.toLowerCase()}]`)
	if (!found) return
	halt(event)
	found.click()
}, "keydown")

export function draw(questions, closed, live) {
	const [question] = questions.values()
	if (!question) return leave(closed, live)
	const now = `${question.id} ${live} ${questions.size}`
	if (now === shown) return
	const fresh = question.id !== id
	shown = now
	id = question.id
	clearTimeout(gone)
	made = KINDS[question.kind](question, given => answer(question, given))
	const {title, body, actions} = made
	fill(root, el("div.card-head", el(".shape.asks"), el("h2", title), questions.size > 1 && el(".dim", `1 of ${questions.size}`)), el("div.card-body", body), live ? el("div.actions", actions) : el("p.actions.dim", "As it was asked then."))
	root.hidden = false
	root.ariaLabel = title
	if (!fresh || !live) return
	say(`Question: ${title}`)
	// Who types goes on; others answer with a key.
	if (!document.activeElement?.matches("input, select, textarea:not(:placeholder-shown)")) root.focus({preventScroll: true})
}

function leave(closed, live) {
	if (!id) return
	const elsewhere = live && closed?.question.id === id && answered !== id
	if (root.contains(document.activeElement)) $("prompt").focus({preventScroll: true})
	id = shown = ""
	const hide = () => (root.hidden = true)
	if (!elsewhere) return hide()
	fill(root, el("div.card-head", icon("ok"), el("h2", closed.question.kind === "permission" ? decisionText(closed) : `Answered${byWhom(closed.by) || " elsewhere"}.`)))
	gone = setTimeout(hide, 3000)
}
