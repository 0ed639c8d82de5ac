import {ask} from "./connection.js"
import {$, el, fill, halt, image, moveFocus, on, show, write} from "./dom.js"
import {ago, baseName, money, oneLine} from "./text.js"

const list = $("sessions")
export let sessions = []
let open, asked, current, next, timer

function day(stamp) {
	const days = Math.floor((new Date().setHours(0, 0, 0, 0) - new Date(stamp).setHours(0, 0, 0, 0)) / 86400e3)
	if (days < 7) return days <= 0 ? "Today" : days === 1 ? "Yesterday" : "This week"
	return new Date(stamp).toLocaleDateString(undefined, {month: "long", year: "numeric"})
}

export function start(opener) {
	open = opener
	on("search", () => (clearTimeout(timer), (timer = setTimeout(load, 150))), "input")
	on("rail", event => moveFocus(event, [$("search"), ...list.querySelectorAll("a")], ["ArrowUp", "ArrowDown"]), "keydown")
	on("older", () => load(next))
}

export async function load(cursor) {
	const query = $("search").value.trim()
	const mine = (asked = {})
	const given = await ask(`/sessions?${new URLSearchParams({limit: 60, ...(query && {query}), ...(cursor && {cursor})})}`)
	if (!given || asked !== mine) return
	sessions = cursor ? [...sessions, ...given.sessions] : given.sessions
	next = given.next
	draw()
}

export const find = id => sessions.find(each => each.id === id)

export function note(id, state) {
	const known = find(id)
	if (!known || known.state === state) return
	known.state = state
	draw()
}

function draw() {
	const focused = document.activeElement?.dataset.id
	const groups = Map.groupBy(sessions, each => `${baseName(each.cwd)} · ${day(each.updatedAt)}`)
	fill(list, [...groups].map(([title, rows]) => el("li", el("h2", oneLine(title)), el("ul", rows.map(row)))))
	show("older", next)
	show("none", !sessions.length)
	write("none", $("search").value ? "Nothing found in names or prompts." : "Write a prompt to start a session.")
	if (focused) list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus()
}

function row({id, name, preview, state, cost, updatedAt}) {
	const onclick = event => (halt(event), open(id))
	const link = el(
		"a",
		{href: `#session=${id}`, "data-id": id, "aria-current": id === current && "page", onclick},
		el(`.shape.${state}`, image(state)),
		el(".title", oneLine(name || preview || "New session")),
		el(".time", ago(updatedAt)),
		el(".preview", oneLine(name && preview)),
		cost > 0 && el(".cost", money(cost))
	)
	return el("li", link)
}

export function mark(id) {
	current = id
	draw()
}
