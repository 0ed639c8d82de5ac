// What changes in a file, line by line with both numbers.

import { copyButton, el } from "./dom.js";
import { highlight, language } from "./highlight.js";
import { exact } from "./text.js";

const SHOWN = 400;

// Rows of a unified difference.
export function parse(text) {
  const rows = [];
  let before = 0;
  let after = 0;
  for (const line of String(text || "").replace(/\n$/, "").split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)/.exec(line);
    if (hunk) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      rows.push({ kind: "hunk", text: hunk[3].trim() });
    } else if (!before && !after && /^(---|\+\+\+|diff |index )/.test(line)) continue;
    else if (line.startsWith("+")) rows.push({ kind: "add", after: after++, text: line.slice(1) });
    else if (line.startsWith("-")) rows.push({ kind: "del", before: before++, text: line.slice(1) });
    else if (!line.startsWith("\\")) rows.push({ kind: "same", before: before++, after: after++, text: line.slice(1) });
  }
  return rows;
}

// The same of a change of which only the words are known.
export function compare(old, young) {
  const [before, after] = [old ? String(old).split("\n") : [], young ? String(young).split("\n") : []];
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const same = (line) => ({ kind: "same", text: line });
  return [
    ...before.slice(Math.max(0, head - 3), head).map(same),
    ...before.slice(head, before.length - tail).map((text) => ({ kind: "del", text })),
    ...after.slice(head, after.length - tail).map((text) => ({ kind: "add", text })),
    ...before.slice(before.length - tail, before.length - tail + 3).map(same),
  ];
}

export function tally(rows) {
  const of = (kind) => rows.filter((row) => row.kind === kind).length;
  return { added: of("add"), removed: of("del") };
}

// The change that a call makes or has made, if it is one of a file.
export function changeOf(call) {
  const given = call.args || {};
  const path = given.file_path ?? given.filePath ?? given.notebook_path;
  if (typeof path !== "string") return null;
  const told = call.metadata?.diff;
  if (typeof told === "string" && told) return { path, rows: parse(told), text: told };
  if (call.name === "Edit" && typeof given.new_string === "string") return { path, rows: compare(given.old_string, given.new_string) };
  if (call.name === "Write" && typeof given.content === "string") return { path, rows: compare("", given.content.replace(/\n$/, "")) };
  return null;
}

const SIGNS = { add: "+", del: "−", same: "" };
const SAID = { add: "added ", del: "removed " };

export function diffView(change, cwd) {
  const { rows, path } = change;
  const named = language(path);
  const body = el("tbody");
  const numbered = rows.some((row) => row.before || row.after);
  const show = (from, to) => {
    for (const row of rows.slice(from, to)) {
      if (row.kind === "hunk") {
        if (body.children.length || row.text) body.append(el("tr.hunk", el("td", { colspan: "4" }, row.text ? `⋯ ${exact(row.text)}` : "⋯")));
        continue;
      }
      const words = exact(row.text).slice(0, 2000);
      const cells = numbered ? [el("td.no", row.before ?? ""), el("td.no", row.after ?? "")] : [];
      const sign = el("td.sign", SAID[row.kind] ? el("span.offscreen", SAID[row.kind]) : null, el("span", { "aria-hidden": "true" }, SIGNS[row.kind]));
      body.append(el("tr", { class: row.kind }, ...cells, sign, el("td.words", words.length < 500 && named ? highlight(words, named) : words)));
    }
  };
  show(0, SHOWN);
  const frame = el("div.diff", { role: "region", tabindex: "0", "aria-label": `Changes of ${exact(path)}` }, el("table", body));
  if (rows.length > SHOWN) {
    const rest = el("button", { type: "button", class: "more", onclick: () => (rest.remove(), show(SHOWN, rows.length)) }, `Show ${rows.length - SHOWN} more lines`);
    frame.append(rest);
  }
  const { added, removed } = tally(rows);
  const head = el("div.code-head", el("span.path", exact(cwd ? path.replace(`${cwd}/`, "") : path)), counts(added, removed),
    copyButton(() => change.text ?? rows.map((row) => `${{ add: "+", del: "-" }[row.kind] || " "}${row.text}`).join("\n"), "Copy diff"));
  return el("div.code", head, frame);
}

export function counts(added, removed) {
  return el("span.counts", { role: "img", "aria-label": `${added} added, ${removed} removed` }, el("span.plus", { "aria-hidden": "true" }, `+${added}`), el("span.minus", { "aria-hidden": "true" }, `−${removed}`));
}
