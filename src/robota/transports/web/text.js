// Text made harmless and short: what people read hides nothing, what they decide on is written out.

const TURNING = "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";
const UNSAFE = new RegExp(`[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029${TURNING}\\ud800-\\udfff]`, "u");
const EACH = new RegExp(UNSAFE, "gu");
const HIDDEN = /[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
// Sequences meant for a terminal: CSI, OSC and the other strings, and two-character escapes.
const SEQUENCES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b\u009c]{0,4096}(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]|\u009b[0-?]*[ -/]*[@-~]/g;

const code = (letter) => {
  const point = letter.codePointAt(0);
  return point > 0xffff ? `\\u{${point.toString(16)}}` : `\\u${point.toString(16).padStart(4, "0")}`;
};

function sign(letter) {
  const point = letter.codePointAt(0);
  if (point < 0x20) return String.fromCodePoint(0x2400 + point);
  if (point === 0x7f) return "\u2421";
  return point >= 0xd800 && point <= 0xdfff ? "\ufffd" : code(letter);
}

// Every control character but newline and tab as a visible sign, and those that turn the order of text.
export function plain(text) {
  const given = String(text ?? "");
  return UNSAFE.test(given) ? given.replace(/\r\n/g, "\n").replace(EACH, sign) : given;
}

// For commands, paths, differences and prompts: characters without a width are written out as well.
export const exact = (text) => plain(text).replace(HIDDEN, code);

export const oneLine = (text, most = 400) => exact(String(text ?? "").slice(0, most * 2)).split(/\s+/).join(" ").trim().slice(0, most);

// What a program printed, without what was meant for another screen; of a line that was redrawn, its last form.
export function output(text) {
  const given = String(text ?? "");
  const bare = /[\u001b\u009b\r\b]/.test(given)
    ? given.replace(SEQUENCES, "").replace(/\r\n/g, "\n").replace(/[^\n]*\r(?=[^\n])/g, "").replace(/\r/g, "")
    : given;
  return plain(bare);
}

export function seconds(value) {
  if (value < 0.95) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 10) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}

export function count(value) {
  const number = Number(value) || 0;
  if (number < 1000) return String(number);
  return number < 999_500 ? `${(number / 1000).toFixed(number < 9950 ? 1 : 0)}k` : `${(number / 1e6).toFixed(1)}M`;
}

export function money(value) {
  if (value === null || value === undefined) return "";
  return value > 0 && value < 0.01 ? "<$0.01" : `$${Number(value).toFixed(2)}`;
}

export function ago(stamp, now = Date.now()) {
  const passed = (now - new Date(stamp).getTime()) / 1000;
  if (!Number.isFinite(passed)) return "";
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h`;
  return new Date(stamp).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

export const baseName = (path) => String(path || "").replace(/\/+$/, "").split("/").pop() || String(path || "");

// The path as seen from the session's directory.
export function relative(path, cwd) {
  const given = String(path || "");
  return cwd && given.startsWith(`${cwd}/`) ? given.slice(cwd.length + 1) : given;
}

export function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// What a call is about: its first argument, with the end in sight.
export function about(call, cwd) {
  const given = call.args || {};
  const first = given.command ?? given.file_path ?? given.pattern ?? given.description ?? Object.values(given)[0] ?? "";
  const text = oneLine(typeof first === "string" ? relative(first, cwd) : JSON.stringify(first), 300);
  return call.name === "TodoWrite" ? `${(given.todos || []).length} items` : text;
}
