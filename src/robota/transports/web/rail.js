// The sessions, by project and day, each with its state as a shape and a colour.

import {$, el, on} from "./dom.js"
import {ago, baseName, money, oneLine} from "./text.js"

function day(stamp) {
	const days = Math.floor((new Date().setHours(0, 0, 0, 0) - new Date(stamp).setHours(0, 0, 0, 0)) / 86400e3)
	if (days < 7) return days <= 0 ? "Today" : days === 1 ? "Yesterday" : "This week"
	return new Date(stamp).toLocaleDateString(undefined, {month: "long", year: "numeric"})
}

export class Rail {
	sessions = []
	list = $("sessions")

	constructor(connection, open) {
		Object.assign(this, {connection, open})
		on("search", () => (clearTimeout(this.timer), (this.timer = setTimeout(() => this.load(), 150))), "input")
		on("rail", event => this.move(event), "keydown")
		on("older", () => this.load(this.next))
	}

	async load(cursor) {
		const query = $("search").value.trim()
		const asked = (this.asked = {})
		const given = await this.connection.ask(`/sessions?${new URLSearchParams({limit: 60, ...(query && {query}), ...(cursor && {cursor})})}`)
		if (!given || this.asked !== asked) return
		this.sessions = cursor ? [...this.sessions, ...given.sessions] : given.sessions
		this.next = given.next
		this.draw()
	}

	note(id, state) {
		const known = this.sessions.find(each => each.id === id)
		if (!known || known.state === state) return
		known.state = state
		this.draw()
	}

	draw() {
		const focused = document.activeElement?.dataset.id
		const groups = Map.groupBy(this.sessions, each => `${baseName(each.cwd)} · ${day(each.updatedAt)}`)
		this.list.replaceChildren(...[...groups].map(([title, rows]) => el("li", el("h2", oneLine(title, 60)), el("ul", rows.map(each => this.row(each)))) ))
		$("older").hidden = !this.next
		$("none").hidden = this.sessions.length > 0
		$("none").textContent = $("search").value ? "Nothing found, in names or in what was said." : "Write a prompt to start a session."
		if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus()
	}

	row({id, name, preview, state, cost, updatedAt}) {
		const onclick = event => (event.preventDefault(), this.open(id))
		return el(
			"li",
			el(
				"a",
				{href: `#session=${id}`, "data-id": id, "aria-current": id === this.current ? "page" : null, onclick},
				el(`span.shape.${state}`, {role: "img", "aria-label": state}),
				el("span.title", oneLine(name || preview || "New session", 80)),
				el("span.time", ago(updatedAt)),
				el("span.preview", oneLine(name && preview, 80)),
				cost > 0 && el("span.cost", money(cost))
			)
		)
	}

	mark(id) {
		this.current = id
		this.draw()
	}

	move(event) {
		const stops = [$("search"), ...this.list.querySelectorAll("a")]
		const at = stops.indexOf(document.activeElement) + ({ArrowDown: 1, ArrowUp: -1}[event.key] || NaN)
		if (!stops[at]) return
		event.preventDefault()
		stops[at].focus()
	}
}
