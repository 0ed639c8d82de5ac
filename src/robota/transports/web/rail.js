// The sessions: searched, grouped by project and day, each with its state as a shape and a colour.

import { $, el } from "./dom.js";
import { ago, baseName, money, oneLine } from "./text.js";

const STATES = { running: "running", asks: "asks", idle: "open", failed: "failed", stored: "stored" };

function day(stamp) {
  const then = new Date(stamp);
  const days = Math.floor((new Date().setHours(0, 0, 0, 0) - new Date(then).setHours(0, 0, 0, 0)) / 86400e3);
  if (Number.isNaN(days)) return "";
  if (days <= 0) return "Today";
  return days === 1 ? "Yesterday" : days < 7 ? "This week" : then.toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

export class Rail {
  constructor(connection, { open, fresh }) {
    Object.assign(this, { connection, open, sessions: [], current: "", next: null });
    this.list = $("sessions");
    $("new").addEventListener("click", fresh);
    $("search").addEventListener("input", () => (clearTimeout(this.timer), (this.timer = setTimeout(() => this.load(), 150))));
    $("search").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.list.querySelector("a")?.focus();
      if (event.key === "Escape") (event.target.value = ""), event.target.blur(), this.load();
    });
    this.list.addEventListener("keydown", (event) => this.move(event));
    $("older").addEventListener("click", () => this.load(this.next));
  }

  async load(cursor = null) {
    const words = $("search").value.trim();
    const query = new URLSearchParams({ limit: 60, ...(words && { query: words }), ...(cursor && { cursor }) });
    const asked = (this.asked = {});
    const given = await this.connection.ask(`/sessions?${query}`);
    if (!given || this.asked !== asked) return;
    this.sessions = cursor ? [...this.sessions, ...given.sessions] : given.sessions;
    this.next = given.next;
    this.draw();
  }

  // What is known here sooner than the server is asked again.
  note(id, fields) {
    const known = this.sessions.find((each) => each.id === id);
    if (!known || Object.entries(fields).every(([name, value]) => known[name] === value)) return;
    Object.assign(known, fields);
    this.draw();
  }

  draw() {
    const focused = document.activeElement?.dataset?.id;
    let group = "";
    const rows = [];
    for (const each of this.sessions) {
      const title = `${baseName(each.cwd) || "Sessions"} · ${day(each.updatedAt)}`;
      if (title !== group) rows.push(el("li.group", { role: "presentation" }, el("span", { title: each.cwd }, oneLine(title, 60))));
      group = title;
      rows.push(this.row(each));
    }
    this.list.replaceChildren(...rows);
    $("older").hidden = !this.next;
    $("none").hidden = rows.length > 0;
    $("none").textContent = $("search").value ? "Nothing found. The search looks at names and at what was said." : "No sessions yet. Write a prompt to start one.";
    if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  row(each) {
    const state = STATES[each.state] || "stored";
    const name = oneLine(each.name || each.preview || "New session", 80);
    const below = each.name && each.preview ? oneLine(each.preview, 80) : "";
    const link = el(
      "a",
      { href: `#session=${encodeURIComponent(each.id)}`, "data-id": each.id, "aria-current": each.id === this.current ? "page" : null, onclick: (event) => (event.preventDefault(), this.open(each.id)) },
      el("span", { class: `shape ${each.state}`, role: "img", "aria-label": state }),
      el("span.title", name),
      el("span.time", ago(each.updatedAt)),
      below ? el("span.preview", below) : null,
      each.cost ? el("span.cost", money(each.cost)) : null,
    );
    return el("li", link);
  }

  mark(id) {
    this.current = id;
    for (const link of this.list.querySelectorAll("a")) link.dataset.id === id ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }

  move(event) {
    const links = [...this.list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    (to < 0 ? $("search") : links[Math.min(to, links.length - 1)])?.focus();
  }
}
