// Elements without markup: nothing that a model wrote can become HTML.

const present = given => given.flat().filter(child => child || child === 0)

// `el("li.done", {title, label}, child, …)`: what is empty is left out, no tag is a span.
function build(make, spec, given) {
	const [tag, ...classes] = spec.split(".")
	const node = make(tag || "span")
	if (classes.length) node.setAttribute("class", classes.join(" "))
	const props = given[0]?.constructor === Object ? given.shift() : {}
	for (const [name, value] of Object.entries(props)) {
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value)
		else if (value || value === 0) node.setAttribute(name === "label" ? "aria-label" : name, value === true ? "" : value)
	}
	node.append(...present(given))
	return node
}

const SVG = "http://www.w3.org/2000/svg"
export const el = (spec, ...given) => build(tag => document.createElement(tag), spec, given)
export const svg = (spec, ...given) => build(tag => document.createElementNS(SVG, tag), spec, given)
export const fill = (node, ...given) => node.replaceChildren(...present(given))
export const $ = id => document.getElementById(id)
export const on = (id, action, name = "click") => $(id).addEventListener(name, action)
export const set = (id, name, value) => $(id).setAttribute(name, value)
export const halt = event => event.preventDefault()
export const write = (id, words) => ($(id).textContent = words)
export const show = (id, shown = true) => ($(id).hidden = !shown)

const CIRCLE = "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z"
const ICONS = {
	file: "M4 1.5h5L12.5 5v9.5H4zM9 1.5V5h3.5",
	pencil: "M2.5 13.5l.8-3.2 7.5-7.5 2.4 2.4-7.5 7.5zM9.3 4.3l2.4 2.4",
	terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.2h3.2",
	search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.4 10.4l3.2 3.2",
	agent: "M3.5 6h9v7h-9zM8 6V3M6 9.2v.8M10 9.2v.8M1.5 9v1.5M14.5 9v1.5",
	list: "M2 4l1.2 1.2L5.5 3M7.5 4.2H14M2 9l1.2 1.2L5.5 8M7.5 9.2H14M7.5 13.3H14M2.8 13.3h1.5",
	tool: "M3 5.5h10v7H3zM6 5.5V3h4v2.5M3 9h10",
	ok: "M3 8.5l3.2 3.2L13 5",
	no: "M4 4l8 8M12 4l-8 8",
	send: "M8 13.5v-11M3.5 7L8 2.5 12.5 7",
	chevron: "M6 3.5L10.5 8 6 12.5",
	menu: "M2 4h12M2 8h12M2 12h12",
	panel: "M2 3h12v10H2zM10 3v10",
	plus: "M8 3v10M3 8h10",
	copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
	link: "M6.5 9.5l3-3M7 4.5L8.5 3A3 3 0 0 1 13 7.5L11.5 9M9 11.5L7.5 13A3 3 0 0 1 3 8.5L4.5 7",
	clock: `${CIRCLE}M8 4.5V8l2.5 1.5`,
	play: "M4.5 2.5l9 5.5-9 5.5z",
	pause: "M5 3v10M11 3v10",
	auto: `${CIRCLE}M8 2v12M8 5h4.5M8 8h6M8 11h4.5`,
	warn: "M8 2l6.5 11.5h-13zM8 6.5V10M8 11.7v.3",
	chat: "M2 3h12v8H7l-3 2.5V11H2z",
	gauge: "M2 11.5a6 6 0 1 1 12 0M8 11.5l3-4",
	coins: "M2.5 13V9M6.2 13V5M9.8 13V7.5M13.5 13V3"
}

export const image = label => ({role: "img", label})
export const silent = {"aria-hidden": "true"}
export const icon = (name, label) => svg(`svg.icon.i-${name}`, {viewBox: "0 0 16 16", ...(label ? image(label) : silent)}, svg("path", {d: ICONS[name]}))
export const button = (name, title, onclick, kind = "") => el(`button.quiet${kind}`, {title, onclick}, icon(name))
export const region = (spec, label, ...given) => el(spec, {tabindex: 0, role: "region", label}, ...given)
export const copy = text => navigator.clipboard?.writeText(text).then(() => true, () => false)
export const say = text => write("announcer", text.slice(0, 400))

// Copies what it is given, not what is shown.
export function copyButton(read, label) {
	const copied = async () => {
		fill(made, icon((await copy(read())) ? "ok" : "no"))
		setTimeout(() => fill(made, icon("copy")), 1200)
	}
	const made = button("copy", `Copy ${label}`, copied, ".copy")
	return made
}

export const framed = (head, read, label, ...body) => el("div.code", el("div.code-head", head, copyButton(read, label)), ...body)

export const remember = (opened, key, open) => opened[open ? "add" : "delete"](key)

export function moveFocus(event, stops, [before, after]) {
	const to = stops[stops.indexOf(document.activeElement) + ({[after]: 1, [before]: -1}[event.key] || NaN)]
	if (to) halt(event)
	to?.focus()
}

export const more = (words, action) => {
	const made = el("button.more", {onclick: () => (made.remove(), action())}, words)
	return made
}

export function ask(title, note, value = "", type = "text") {
	const [box, input] = [$("ask"), $("ask-words")]
	if (box.open) return ""
	write("ask-title", title)
	write("ask-note", note)
	Object.assign(input, {type, value})
	box.returnValue = ""
	box.showModal()
	input.select()
	return new Promise(done => (box.onclose = () => done(box.returnValue && input.value.trim())))
}
