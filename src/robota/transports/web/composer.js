// Where prompts are written.

import {$, button, el, on} from "./dom.js"
import {exact, oneLine} from "./text.js"

const readImage = file =>
	new Promise(resolve => {
		const reader = new FileReader()
		reader.onload = () => resolve(reader.result)
		reader.readAsDataURL(file)
	})

export class Composer {
	input = $("prompt")
	list = $("completions")
	images = []
	options = []
	chosen = -1

	constructor(to) {
		this.to = to
		on("prompt", () => (this.grow(), this.complete(), to.typing(this.filled)), "input")
		on("prompt", event => this.press(event), "keydown")
		on("prompt", () => setTimeout(() => this.close(), 150), "blur")
		on("prompt", event => this.take(event.clipboardData, event), "paste")
		const {body} = document
		addEventListener("dragover", event => event.dataTransfer.types.includes("Files") && (event.preventDefault(), body.classList.add("dropping")))
		addEventListener("dragleave", event => event.relatedTarget || body.classList.remove("dropping"))
		addEventListener("drop", event => (body.classList.remove("dropping"), this.take(event.dataTransfer, event)))
		on("send", () => this.send())
		on("stop", to.stop)
	}

	get filled() {
		return Boolean(this.input.value.trim() || this.images.length)
	}

	grow() {
		this.input.style.height = "auto"
		this.input.style.height = `${Math.min(this.input.scrollHeight, 196)}px`
		this.offer()
	}

	offer() {
		$("send").disabled = !this.filled
		$("send").hidden = this.running && !this.filled
	}

	async send(steering) {
		const text = this.input.value
		if (!this.filled || this.sending) return
		this.sending = true
		this.close()
		try {
			if (steering && this.running) await this.to.steer(text)
			else
				await this.to.submit(text, this.images.map(({mediaType, data}) => ({mediaType, data})))
			if (this.input.value === text) this.input.value = ""
			this.images = []
			this.showImages()
			this.to.typing(false)
		} catch (error) {
			this.to.fail(error)
		}
		this.sending = false
	}

	press(event) {
		const {key, shiftKey, isComposing} = event
		const listed = !this.list.hidden
		const step = listed && {ArrowDown: 1, ArrowUp: -1}[key]
		if (isComposing) return
		if (step) this.choose((this.chosen + step + this.options.length) % this.options.length)
		else if (listed && (key === "Tab" || (key === "Enter" && !shiftKey))) this.accept(this.options[this.chosen])
		else if (listed && key === "Escape") this.close()
		else if (key === "Enter" && !shiftKey) this.send(event.ctrlKey || event.metaKey)
		else return
		event.preventDefault()
		event.stopPropagation()
	}

	async take(given, event) {
		const files = [...(given?.files || [])].filter(file => /^image\/(png|jpeg|gif|webp)$/.test(file.type))
		if (!files.length) return
		event.preventDefault()
		for (const file of files) {
			const url = await readImage(file)
			this.images.push({mediaType: file.type, data: url.slice(url.indexOf(",") + 1), url, name: file.name})
		}
		this.showImages()
	}

	showImages() {
		const drop = image => ((this.images = this.images.filter(each => each !== image)), this.showImages())
		$("attached").replaceChildren(...this.images.map(image => el("li", el("img", {src: image.url, alt: image.name}), button("no", `Remove ${image.name}`, () => drop(image))) ))
		this.grow()
	}

	async complete() {
		const before = this.input.value.slice(0, this.input.selectionStart)
		const called = /^\/([\w:-]*)$/.exec(before)
		const word = (called || /(?:^|\s)@([^\s@]*)$/.exec(before))?.[1]
		if (word === undefined) return this.close()
		this.asked = before
		const given = called ? await this.to.commands() : await this.to.files(word)
		if (this.asked !== before) return
		const fits = called ? given.filter(({name}) => name.includes(word)).sort((a, b) => b.name.startsWith(word) - a.name.startsWith(word)) : given
		this.options = fits.slice(0, 8).map(({name, path, description}) => ({label: called ? `/${name}` : `@${path}`, note: description, size: word.length + 1}))
		if (!this.options.length) return this.close()
		const row = (option, at) => el("li", {role: "option", id: `option-${at}`, onmousedown: event => (event.preventDefault(), this.accept(option))}, el("span.label", exact(option.label)), el("span.note", oneLine(option.note, 120)))
		this.list.replaceChildren(...this.options.map(row))
		this.list.hidden = false
		this.input.ariaExpanded = true
		this.choose(0)
	}

	choose(at) {
		this.chosen = at
		;[...this.list.children].forEach((item, index) => (item.ariaSelected = index === at))
		this.input.setAttribute("aria-activedescendant", `option-${at}`)
	}

	accept({label, size}) {
		const at = this.input.selectionStart
		this.input.setRangeText(`${label} `, at - size, at, "end")
		this.close()
		this.grow()
	}

	close() {
		this.asked = null
		this.list.hidden = true
		this.input.ariaExpanded = false
		this.input.removeAttribute("aria-activedescendant")
	}

	show(running, queued, doing, live) {
		this.running = running
		$("stop").hidden = !running || !live
		$("ghost").hidden = !queued
		$("ghost-words").textContent = exact(queued).slice(0, 300)
		$("doing").textContent = doing
		$("doing").hidden = !doing
		this.input.placeholder = !live ? "Looking back: End is now" : running ? "What next? Ctrl-Enter tells it now" : "Ask for a change, / commands, @ files"
		this.offer()
	}
}
