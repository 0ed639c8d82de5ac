// Light, dark, or as the system has it; the choice is remembered.

import {$, icon, on, set} from "./dom.js"

const ORDER = {auto: "light", light: "dark", dark: "auto"}

export function initTheme() {
	const {dataset} = document.documentElement
	const use = theme => {
		dataset.theme = localStorage["robota.theme"] = theme
		set("theme", "title", `Colours: ${theme}`)
	}
	use(ORDER[localStorage["robota.theme"]] ? localStorage["robota.theme"] : "auto")
	$("theme").append(icon("auto"))
	on("theme", () => use(ORDER[dataset.theme]))
}
