// Who else watches the session, and who of them is writing.

import {$, ask, el, on, set} from "./dom.js"
import {oneLine} from "./text.js"

const KEY = "robota.name"
const QUIET = 4000 // who presses no key for so long is not writing any more

const found = pattern => pattern.exec(navigator.userAgent)?.[0]
const guess = () => [found(/Firefox|Edg|Chrome|Safari/) || "A browser", found(/iPhone|iPad|Android|Windows|Mac OS|Linux/)].filter(Boolean).join(" on ")

export class People {
	id = Math.random().toString(36).slice(2)
	others = []

	constructor(connection, {tell, changed}) {
		Object.assign(this, {connection, tell, changed})
		on("me", async () => {
			const name = await ask("Your name", "Those who watch with you see it beside what you answer.", this.name)
			if (name) this.use((localStorage[KEY] = name))
			this.changed()
		})
		this.use(localStorage[KEY] || guess())
	}

	use(name) {
		this.connection.client = this.name = oneLine(name, 60)
		$("me").textContent = `You are ${this.name}`
	}

	take(clients) {
		this.others = clients.filter(({id}) => id !== this.id).map(({name, typing}) => ({name: oneLine(name, 60), typing}))
		const names = this.others.map(({name}) => name).join(", ")
		const faces = this.others.map(({name, typing}) => el(`span.face${typing ? ".typing" : ""}`, ([...name][0] || "?").toUpperCase()))
		$("people").replaceChildren(...faces.slice(0, 3), faces.length > 3 ? `+${faces.length - 3}` : "")
		$("people").hidden = !names
		for (const name of ["title", "aria-label"]) set("people", name, `Also here: ${names}`)
	}

	get writing() {
		const names = this.others.filter(({typing}) => typing).map(({name}) => name)
		return names.length ? `${names.join(", ")} ${names.length > 1 ? "are" : "is"} writing` : ""
	}

	type(typing) {
		clearTimeout(this.timer)
		if (typing) this.timer = setTimeout(() => this.type(false), QUIET)
		if (typing === Boolean(this.typing) || !this.others.length) return
		this.typing = typing
		this.tell({client: this.id, typing})
	}
}
