const UNSAFE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu
const HIDDEN = /[[\p{DI}\ufff9-\ufffb]--[\ufe00-\ufe0f]]/gv
const SEQUENCES = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]/g

const code = letter => `\\u${letter.codePointAt(0).toString(16).padStart(4, "0")}`

function sign(letter) {
	const point = letter.codePointAt(0)
	if (point < 0x20) return String.fromCodePoint(0x2400 + point)
	return point >= 0xd800 && point < 0xe000 ? "\ufffd" : code(letter)
}

const string = text => String(text ?? "")

// Control and direction characters as visible signs.
export const plain = text => string(text).replace(/\r\n/g, "\n").replace(UNSAFE, sign)

// For what people decide on: without characters that have no width.
export const exact = text => plain(text).replace(HIDDEN, code)

export const oneLine = (text, most = 120) => exact(string(text).slice(0, most * 2)).replace(/\s+/g, " ").trim().slice(0, most)

export function output(text) {
	const given = string(text).replace(SEQUENCES, "").replace(/\r\n/g, "\n")
	return plain(given.replace(/[^\n]*\r(?=[^\n])/g, "").replace(/\r/g, ""))
}

export function seconds(value) {
	if (value < 0.95) return `${Math.max(1, Math.round(value * 1000))} ms`
	if (value < 10) return `${value.toFixed(1)} s`
	const whole = Math.round(value)
	return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}

export function count(value = 0) {
	if (value < 1000) return String(value)
	return value < 999_500 ? `${(value / 1000).toFixed(value < 9950 ? 1 : 0)}k` : `${(value / 1e6).toFixed(1)}M`
}

export const money = value => (value > 0 && value < 0.01 ? "<$0.01" : `$${+value.toFixed(2)}`)

export function ago(stamp) {
	const passed = (Date.now() - new Date(stamp)) / 60000
	if (!(passed < 1440)) return new Date(stamp).toLocaleDateString(undefined, {month: "short", day: "numeric"})
	return passed < 1 ? "now" : passed < 60 ? `${Math.floor(passed)} min` : `${Math.floor(passed / 60)} h`
}

export const baseName = path => /([^/]*)\/*$/.exec(path || "")[1]

export const relative = (path, cwd) => (cwd && String(path).startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : string(path))

export const pretty = value => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

export function about(call, cwd) {
	const given = call.args
	if (call.name === "TodoWrite") return `${given.todos?.length ?? 0} items`
	const plan = given.plan?.split?.("\n")[0].replace(/^#+ /, "")
	const first = given.questions?.[0]?.question ?? plan ?? given.command ?? given.file_path ?? given.pattern ?? given.description ?? Object.values(given)[0] ?? ""
	return oneLine(typeof first === "string" ? relative(first, cwd) : JSON.stringify(first), 300)
}

export const dotted = (...parts) => parts.filter(Boolean).join(" · ")
export const byWhom = by => (by ? ` by ${oneLine(by)}` : "")
export const total = (all, name) => all.reduce((sum, each) => sum + (each[name] || 0), 0)
export const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`

export const agentName = name => oneLine(name).replace(/-[0-9a-f]{8}$/, "")

export const taskLabel = task => oneLine(task.label || task.command || task.agentType || task.prompt || task.taskId, 100)
