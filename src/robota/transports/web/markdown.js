// A finished block of Markdown as elements. HTML in it is text, images are links, links go to http(s) only.

import { copyButton, el } from "./dom.js";
import { highlight } from "./highlight.js";
import { isRow, split } from "./splitter.js";
import { plain } from "./text.js";

const INLINE = new RegExp(
  [
    "\\\\(?<escaped>[!-/:-@[-`{-~])",
    "(?<ticks>`{1,3})(?<code>[^`]+)\\k<ticks>(?!`)",
    "!?\\[(?<label>[^\\[\\]\\n]{0,400})\\]\\((?<target>[^\\s()<>]{1,2000}(?:\\([^\\s()]{0,200}\\)[^\\s()]{0,500})?)(?:\\s+\"[^\"\\n]{0,200}\")?\\)",
    "<?(?<address>https?://[^\\s<>\"'`\\])]+(?:\\([^\\s()<>]{0,200}\\))?)>?",
    "(?<mark>\\*\\*|__|~~|\\*|_)(?=\\S)",
  ].join("|"),
  "gu",
);
const CLOSING = { "**": /\*\*(?!\*)/g, __: /__(?![\w_])/g, "~~": /~~/g, "*": /\*(?!\*)/g, _: /_(?![\w_])/g };
const MARKS = { "**": "strong", __: "strong", "~~": "s", "*": "em", _: "em" };
const DEEP = 6;

export function inline(text, depth = 0) {
  const nodes = [];
  let at = 0;
  const upTo = (end) => end > at && nodes.push(text.slice(at, end));
  INLINE.lastIndex = 0;
  const finder = new RegExp(INLINE);
  for (let found = finder.exec(text); found; found = finder.exec(text)) {
    const { escaped, code, label, target, address, mark } = found.groups;
    let node = null;
    if (escaped) node = escaped;
    else if (code !== undefined) node = el("code", code.replace(/\n/g, " ").replace(/^ (.*) $/, "$1"));
    else if (target) node = link(target, label || target, depth);
    else if (address) {
      const bare = address.replace(/[.,;:!?*_~]+$/, "");
      finder.lastIndex = found.index + found[0].indexOf(bare) + bare.length + (found[0].endsWith(">") && bare === address ? 1 : 0);
      node = link(bare, bare, depth);
    } else if (depth < DEEP) {
      const inWord = mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[found.index - 1] || " ");
      const start = found.index + mark.length;
      const end = inWord ? -1 : closing(text, mark, start);
      if (end > start) {
        node = el(MARKS[mark], null, inline(text.slice(start, end), depth + 1));
        finder.lastIndex = end + mark.length;
      }
    }
    if (node === null) {
      finder.lastIndex = found.index + found[0].length;
      continue;
    }
    upTo(found.index);
    nodes.push(node);
    at = finder.lastIndex;
  }
  upTo(text.length);
  return nodes;
}

// Only so far, or a text full of marks that nothing closes would take the square of its length.
function closing(text, mark, start) {
  const near = text.slice(start, start + 1000);
  CLOSING[mark].lastIndex = 1;
  const found = CLOSING[mark].exec(near);
  return found && !/\s/.test(near[found.index - 1]) ? start + found.index : -1;
}

function link(target, label, depth) {
  let url = null;
  try {
    url = new URL(target);
  } catch {
    // not an address: shown as it was written
  }
  if (!url || !/^https?:$/.test(url.protocol)) return `${label} (${target})`;
  const same = label === target;
  const made = el("a", { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank", title: url.href, "data-leave": true });
  made.append(...(same || depth >= DEEP ? [label] : inline(label.replace(/https?:\/\//g, ""), DEEP)));
  return same ? made : el("span", made, el("span.host", ` ${url.host}`));
}

export function code(text, language, before) {
  const body = el("code", { tabindex: "0", role: "region", "aria-label": language ? `${language} code` : "code" });
  body.append(...(language && text.length < 20000 ? highlight(text, language) : [text]));
  const block = el("div", { class: before ? "code more" : "code" }, el("pre", body));
  if (!before) block.prepend(el("div.code-head", el("span", language || "text"), copyButton(() => block.copied?.() ?? text, "Copy code")));
  return block;
}

function paragraph(text) {
  const lines = text.split("\n");
  return lines.flatMap((line, at) => [
    ...inline(line.replace(/ +$|\\$/, "")),
    ...(at < lines.length - 1 ? [/ {2,}$|\\$/.test(line) ? el("br") : "\n"] : []),
  ]);
}

function heading(text) {
  const [, marks, words] = /^\s*(#{1,6})\s*(.*?)\s*#*\s*$/.exec(text) || [null, "#", text];
  // The page has a first heading of its own.
  return el(`h${Math.min(6, marks.length + 2)}`, { class: `h${Math.min(4, marks.length)}` }, inline(words));
}

const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).slice(0, 60).map((cell) => cell.trim().replace(/\\\|/g, "|"));

function table(text, more) {
  const rows = text.split("\n").filter(isRow);
  const ruled = /^[\s|:-]+$/.test(rows[1] || "") && rows[1].includes("-");
  const sides = ruled ? cells(rows[1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "middle" : "end") : "")) : [];
  const row = (line, tag) => el("tr", cells(line).map((cell, at) => el(tag, { class: sides[at] || null }, inline(cell))));
  const head = ruled && !more ? el("thead", row(rows[0], "th")) : null;
  const body = el("tbody", rows.slice(head ? 2 : 0).map((line) => row(line, "td")));
  return el("div.scroll", { tabindex: "0", role: "region", "aria-label": "Table" }, el("table", head, body));
}

const ITEM = /^(\s*)([-+*]|\d{1,9}[.)])(?:\s+|$)(\[[ xX]\]\s+)?(.*)$/;

function list(text, depth = 0) {
  const lines = text.split("\n");
  const first = ITEM.exec(lines[0]);
  const indent = first ? first[1].length : 0;
  const ordered = first && /\d/.test(first[2]);
  const made = el(ordered ? "ol" : "ul", ordered && parseInt(first[2], 10) !== 1 ? { start: parseInt(first[2], 10) } : null);
  let inner = [];
  let item = null;
  const close = () => {
    if (!item) return;
    const [words, ...rest] = inner;
    const at = rest.findIndex((line) => ITEM.test(line) || !line.trim());
    const own = at < 0 ? rest : rest.slice(0, at);
    item.append(...paragraph([words, ...own.map((line) => line.trim())].join("\n")));
    const below = at < 0 ? [] : rest.slice(at);
    if (below.some((line) => line.trim())) item.append(...nested(below, depth));
  };
  for (const line of lines) {
    const found = ITEM.exec(line);
    if (found && found[1].length <= indent + 1) {
      close();
      const box = found[3] ? el("span.box", /x/i.test(found[3]) ? "☑ " : "☐ ") : null;
      item = el("li", box);
      made.append(item);
      inner = [found[4]];
    } else inner.push(line);
  }
  close();
  return made;
}

function nested(lines, depth) {
  const used = lines.filter((line) => line.trim());
  const margin = Math.min(...used.map((line) => /^\s*/.exec(line)[0].length));
  const text = lines.map((line) => line.slice(margin)).join("\n").trim();
  return depth >= DEEP ? [text] : split(text).map((piece) => render(piece, depth + 1));
}

export function render(piece, depth = 0) {
  const text = plain(piece.text);
  if (piece.kind === "code") return code(text, piece.language, piece.more);
  if (piece.kind === "heading") return heading(text);
  if (piece.kind === "rule") return el("hr");
  if (piece.kind === "list") return list(text, depth);
  if (piece.kind === "table" && (piece.more || /\n[\s|:-]*-[\s|:-]*(\n|$)/.test(text))) return table(text, piece.more);
  if (piece.kind === "quote") {
    const inside = text.split("\n").map((line) => line.replace(/^\s*> ?/, "")).join("\n");
    return el("blockquote", depth >= DEEP ? inside : split(inside).map((each) => render(each, depth + 1)));
  }
  return el("p", paragraph(text));
}

export const renderAll = (text) => split(text).map((piece) => render(piece));
