// Keys that work wherever nobody is writing.

import {$} from "./dom.js"

export function listenToKeys(app) {
	const {replay} = app
	const keys = {
		n: () => app.fresh(),
		"/": () => (app.sheet(innerWidth < 900), $("search").focus()),
		r: () => replay.toggle(),
		p: () => $("show-panel").click(),
		i: () => $("prompt").focus(),
		End: () => (replay.open ? replay.toggle(false) : app.transcript.toEnd()),
		".": () => replay.open && replay.step(1),
		",": () => replay.open && replay.step(-1)
	}
	addEventListener("keydown", event => {
		const {key, target} = event
		if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return
		if (key === "Escape") {
			if (document.body.classList.contains("sheet")) app.sheet(false)
			else if (target.id === "search") target.blur()
			else app.stop()
		} else if (keys[key] && (!target.closest("input, textarea, select, #question, [contenteditable]") || (target.id === "moment" && /[,.]/.test(key)))) {
			event.preventDefault()
			keys[key]()
		}
	})
}
