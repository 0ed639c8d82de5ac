import {$, button, el, fill, halt, on, show, write} from "./dom.js"
import {exact, oneLine} from "./text.js"

const input = $("prompt")
const list = $("completions")
const {classList} = document.body
let images = []
let options = []
let chosen = -1
let to, running, sending, asked

export function start(given) {
	to = given
	on("prompt", () => (grow(), complete(), to.typing(filled())), "input")
	on("prompt", press, "keydown")
	on("prompt", () => setTimeout(close, 150), "blur")
	on("prompt", event => take(event.clipboardData, event), "paste")
	addEventListener("dragover", event => event.dataTransfer.types.includes("Files") && (halt(event), classList.add("dropping")))
	addEventListener("dragleave", event => event.relatedTarget || classList.remove("dropping"))
	addEventListener("drop", event => (classList.remove("dropping"), take(event.dataTransfer, event)))
	on("send", () => send())
	on("stop", to.stop)
}

const filled = () => Boolean(input.value.trim() || images.length)

function grow() {
	input.style.height = "auto"
	input.style.height = `${Math.min(input.scrollHeight, 196)}px`
	offer()
}

function offer() {
	$("send").disabled = !filled()
	show("send", !running || filled())
}

export async function send(steering) {
	const text = input.value
	if (!filled() || sending) return
	sending = true
	close()
	input.value = "" // or no question takes the focus
	try {
		if (steering && running) await to.steer(text)
		else await to.submit(text, images.map(({mediaType, data}) => ({mediaType, data})))
		showImages([])
		to.typing(filled())
	} catch (error) {
		input.value = text + input.value
		to.fail(error)
	}
	sending = false
}

function press(event) {
	const {key, shiftKey, isComposing} = event
	const listed = !list.hidden
	const step = listed && {ArrowDown: 1, ArrowUp: -1}[key]
	const enter = key === "Enter" && !shiftKey
	if (isComposing) return
	if (step) choose((chosen + step + options.length) % options.length)
	else if (listed && (key === "Tab" || enter)) accept(options[chosen])
	else if (listed && key === "Escape") close()
	else if (enter) send(event.ctrlKey || event.metaKey)
	else return
	halt(event)
	event.stopPropagation()
}

const readImage = file =>
	new Promise(done => {
		const reader = new FileReader()
		reader.onload = () => done(reader.result)
		reader.readAsDataURL(file)
	})

async function take(given, event) {
	const files = [...(given?.files || [])].filter(file => /^image\/(png|jpeg|gif|webp)$/.test(file.type))
	if (!files.length) return
	halt(event)
	for (const file of files) {
		const url = await readImage(file)
		images.push({mediaType: file.type, data: url.slice(url.indexOf(",") + 1), url, name: file.name})
	}
	showImages(images)
}

function showImages(given) {
	images = given
	const without = image => images.filter(each => each !== image)
	fill($("attached"), images.map(image => el("li", el("img", {src: image.url, alt: image.name}), button("no", `Remove ${image.name}`, () => showImages(without(image))))))
	grow()
}

async function complete() {
	const before = input.value.slice(0, input.selectionStart)
	const called = /^\/([\w:-]*)$/.exec(before)
	const word = (called || /(?:^|\s)@([^\s@]*)$/.exec(before))?.[1]
	if (word === undefined) return close()
	asked = before
	const given = called ? await to.commands() : await to.files(word)
	if (asked !== before) return
	const fits = called ? given.filter(({name}) => name.includes(word)).sort((a, b) => b.name.startsWith(word) - a.name.startsWith(word)) : given
	options = fits.slice(0, 8).map(({name, reference, description}) => ({label: called ? `/${name}` : reference, note: description, size: word.length + 1}))
	if (!options.length) return close()
	const row = (option, at) => el("li", {role: "option", id: `option-${at}`, onmousedown: event => (halt(event), accept(option))}, el(".label", exact(option.label)), el(".note", oneLine(option.note)))
	fill(list, options.map(row))
	list.hidden = false
	input.ariaExpanded = true
	choose(0)
}

function choose(at) {
	chosen = at
	;[...list.children].forEach((item, index) => (item.ariaSelected = index === at))
	input.setAttribute("aria-activedescendant", `option-${at}`)
}

function accept({label, size}) {
	const at = input.selectionStart
	input.setRangeText(`${label} `, at - size, at, "end")
	close()
	grow()
}

function close() {
	asked = null
	list.hidden = true
	input.ariaExpanded = false
	input.removeAttribute("aria-activedescendant")
}

export function draw(runs, queued, doing, live) {
	running = runs
	show("stop", running && live)
	show("ghost", queued)
	write("ghost-words", exact(queued).slice(0, 300))
	write("doing", doing)
	show("doing", doing)
	input.placeholder = !live ? "Looking back: End is now" : running ? "What next? Ctrl-Enter tells it now" : "Ask for a change, / commands, @ files"
	offer()
}
