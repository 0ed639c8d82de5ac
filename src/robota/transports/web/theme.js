// Light, dark, or as the system has it; the choice is remembered.

import { $, icon, on, set } from "./dom.js";

const ICONS = { auto: "auto", light: "sun", dark: "moon" };
const ORDER = Object.keys(ICONS);

export function initTheme() {
	const { dataset } = document.documentElement;
	const use = (theme) => {
		dataset.theme = localStorage["robota.theme"] = theme;
		$("theme").replaceChildren(icon(ICONS[theme]));
		set("theme", "aria-label", `Colours: ${theme}`);
	};
	use(ICONS[localStorage["robota.theme"]] ? localStorage["robota.theme"] : "auto");
	on("theme", () => use(ORDER[(ORDER.indexOf(dataset.theme) + 1) % 3]));
}
