import {callMe} from "./connection.js"
import {$, ask, el, fill, on, set, show, write} from "./dom.js"
import {oneLine} from "./text.js"

const KEY = "robota.name"
const QUIET = 4000 // who presses no key for so long is not writing any more

const found = pattern => pattern.exec(navigator.userAgent)?.[0]
const guess = () => [found(/Firefox|Edg|Chrome|Safari/) || "A browser", found(/iPhone|iPad|Android|Windows|Mac OS|Linux/)].filter(Boolean).join(" on ")

export const id = Math.random().toString(36).slice(2)
let others = []
let name, typing, timer, tell

export function start(teller, changed) {
	tell = teller
	use(localStorage[KEY] || guess())
	on("me", async () => {
		const given = await ask("Your name", "Others see it beside what you answer.", name)
		if (given) use((localStorage[KEY] = given))
		changed()
	})
}

function use(given) {
	name = oneLine(given)
	callMe(name)
	write("me", `You are ${name}`)
}

export function take(clients) {
	others = clients.filter(each => each.id !== id).map(({name, typing}) => ({name: oneLine(name), typing}))
	const names = others.map(({name}) => name).join(", ")
	const faces = others.map(({name, typing}) => el(`.face${typing ? ".typing" : ""}`, ([...name][0] || "?").toUpperCase()))
	fill($("people"), faces.slice(0, 3), faces.length > 3 && `+${faces.length - 3}`)
	show("people", names)
	for (const each of ["title", "aria-label"]) set("people", each, `Also here: ${names}`)
}

export function writing() {
	const names = others.filter(({typing}) => typing).map(({name}) => name)
	return names.length && `${names.join(", ")} ${names.length > 1 ? "are" : "is"} writing`
}

export function type(now) {
	clearTimeout(timer)
	if (now) timer = setTimeout(() => type(false), QUIET)
	if (now === !!typing || !others.length) return
	typing = now
	tell({client: id, typing})
}
