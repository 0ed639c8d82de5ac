// Light, dark, or as the system has it; the choice is remembered.

import { icon } from "./dom.js";

const KEY = "robota.theme";
const ORDER = { auto: "light", light: "dark", dark: "auto" };
const ICONS = { auto: "auto", light: "sun", dark: "moon" };

export function initTheme(button) {
  const use = (theme) => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEY, theme);
    button.replaceChildren(icon(ICONS[theme]));
    button.title = `Colours: ${theme}`;
    button.setAttribute("aria-label", `Colours: ${theme}`);
  };
  use(ORDER[localStorage.getItem(KEY)] ? localStorage.getItem(KEY) : "auto");
  button.addEventListener("click", () => use(ORDER[document.documentElement.dataset.theme]));
}
