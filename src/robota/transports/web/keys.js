// Keys that work wherever nobody is writing.

import { $ } from "./dom.js";

export function listenToKeys(app) {
  const keys = {
    n: () => app.rail && $("new").click(),
    "/": () => (app.sheet(innerWidth < 900), $("search").focus()),
    r: () => app.replay.toggle(),
    p: () => $("show-panel").click(),
    i: () => $("prompt").focus(),
    End: () => (app.replay.open ? app.replay.toggle(false) : app.transcript.toEnd()),
    ".": () => app.replay.open && app.replay.step(1),
    ",": () => app.replay.open && app.replay.step(-1),
    " ": () => app.replay.open && $("replay-play").click(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") {
      if (document.querySelector("dialog[open]")) return;
      if (document.body.classList.contains("sheet")) return app.sheet(false);
      if (event.target.id !== "search") app.stop();
      return;
    }
    if (event.target.closest("input, textarea, select, button, summary, a, dialog, #question, [contenteditable=plaintext-only]") && !(event.target.id === "moment" && ",. ".includes(event.key))) return;
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
