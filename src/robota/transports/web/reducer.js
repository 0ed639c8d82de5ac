// Events in, state out; `changed` are the blocks to draw again.

import {changeOf} from "./diff.js"
import {taskLabel} from "./text.js"

const PROGRESS = 400

const newConversation = () => ({blocks: [], calls: new Map(), lanes: new Map(), tasks: new Map(), questions: new Map(), changed: new Set(), todos: [], seq: 0})

export const newState = () => ({...newConversation(), fills: [], runs: [], files: new Map()})

// `to.now` is the number of the event that is being heard.
function push(to, kind, fields) {
	endText(to)
	const block = {kind, seq: to.now, ...fields}
	to.blocks.push(block)
	to.changed.add(block)
	return block
}

const note = (to, text, tone = "note") => push(to, "notice", {text, tone})

function endText(to) {
	for (const block of [to.text, to.thought]) if (block) to.changed.add(Object.assign(block, {done: true}))
	to.text = to.thought = to.writing = null
}

function grow(to, name, kind, text) {
	to[name] ||= push(to, kind, {parts: []})
	to[name].parts.push(text)
	to.changed.add(to[name])
}

function callOf(to, {callId: id, executionId: run, round, toolName: name, arguments: args}) {
	const known = to.calls.get(id)
	if (known) return known
	endText(to)
	const last = to.blocks.at(-1)
	const same = last?.kind === "tools" && last.run === run && last.round === round
	const group = same ? last : push(to, "tools", {run, round, calls: [], clock: 0})
	const call = {id, seq: to.now, name, args: args || {}, state: "running", progress: [], group, begin: group.clock}
	group.calls.push(call)
	to.calls.set(id, call)
	to.changed.add(group)
	return call
}

function change(to, call, fields) {
	if (call) to.changed.add(Object.assign(call, fields).group)
}

function noteFile(files, call) {
	const made = files && call.state === "success" && changeOf(call)
	if (!made) return
	const {path, added, removed} = made
	const known = files.get(path) || {path, added: 0, removed: 0, changes: []}
	files.set(path, {path, added: known.added + added, removed: known.removed + removed, changes: [...known.changes, made]})
}

function end(to, outcome) {
	endText(to)
	Object.assign(to, {running: false, outcome})
	for (const call of to.calls.values()) if (call.state === "running") change(to, call, {state: "error", error: "It never ended."})
}

const STOPS = {
	max_tokens: "The answer was cut: it reached its longest length.",
	max_rounds: "Stopped after the most rounds of one prompt. Say “go on” to continue.",
	context_overflow: "The window is full. /compact makes room."
}

const HEARD = {
	run_start(to, {display, prompt, agentName}) {
		push(to, "prompt", {text: display || prompt || ""})
		Object.assign(to, {running: true, said: false, outcome: "", queued: null, name: agentName || to.name})
	},
	text_delta(to, {sequence, text}) {
		if (!sequence && !text.trim()) return endText(to) // the mark between two rounds
		to.said = true
		grow(to, "text", "answer", text)
	},
	reasoning_delta: (to, {text}) => grow(to, "thought", "thinking", text),
	tool_input_delta(to, {toolName}) {
		to.writing = toolName || to.writing
	},
	thinking(to, {isThinking}) {
		to.running = isThinking
	},
	server_tool(to, {input, toolName: name}) {
		const args = input?.constructor === Object ? input : {input}
		push(to, "tools", {calls: [{id: to.now, seq: to.now, name, args, state: "success", progress: [], begin: 0}]})
	},
	provider_retry(to, {message, delay, attempt, maxAttempts}) {
		if (to.text) to.text.broken = true
		note(to, `${message} Trying again${delay ? ` in ${delay.toFixed(1)} s` : ""} (${attempt} of ${maxAttempts}).`, "warn")
	},
	tool_start: callOf,
	tool_progress(to, {callId, text}) {
		const call = to.calls.get(callId)
		if (!call) return
		call.progress.push(text)
		if (call.progress.length > PROGRESS) call.progress.splice(0, PROGRESS / 2)
		change(to, call)
	},
	tool_end(to, event) {
		const call = callOf(to, event)
		const {outcome, content, error, metadata, duration = 0, arguments: args} = event
		const failed = outcome === "success" && metadata?.exitCode
		change(to, call, {args: args || call.args, state: failed ? "error" : outcome, content, error, metadata, duration})
		call.group.clock = Math.max(call.group.clock, call.begin + duration)
		noteFile(to.files, call)
		if (call.name === "TodoWrite" && Array.isArray(call.args.todos) && call.state === "success") to.todos = call.args.todos
	},
	context_update(to, {usedTokens: used, maxTokens: max}) {
		to.context = {used, max}
		to.fills?.push(used)
	},
	context_compact(to, {before, after, trigger, summary}) {
		push(to, "compact", {before: before?.usedPercentage ?? 0, after: after?.usedPercentage ?? 0, trigger, summary})
	},
	model_change(to, {model, notes}) {
		to.model = model
		note(to, [`${model} answers from here on.`, ...(notes || [])].join("\n"))
	},
	settings_change(to, {values}) {
		to.mode = values?.mode ?? values?.permissions?.mode ?? to.mode
	},
	question_asked(to, {question}) {
		endText(to)
		to.questions.set(question.id, question)
		change(to, to.calls.get(question.callId), {asks: true})
	},
	question_closed(to, {id, answer, by, reason}) {
		const question = to.questions.get(id)
		if (!question) return
		to.questions.delete(id)
		to.closed = {question, answer, by, reason}
		change(to, to.calls.get(question.callId), {asks: false, decision: to.closed})
		if (question.kind !== "permission") push(to, "decision", to.closed)
	},
	background_task_event(to, {task, change: what, text}) {
		const doing = /text_delta|tool_start/.test(what) ? text : to.tasks.get(task.taskId)?.doing
		if (what === "closed") to.tasks.delete(task.taskId)
		else to.tasks.set(task.taskId, {...task, doing})
		if (task.mode === "foreground" || !/^(started|completed|failed|cancelled)$/.test(what)) return
		note(to, `Background task ${what}: ${taskLabel(task)}${task.error ? `. ${task.error.message}` : ""}`, what === "failed" ? "error" : "")
	},
	prompt_queued(to, {prompt}) {
		to.queued = prompt
	},
	prompt_steered: (to, {prompt: text}) => push(to, "prompt", {text}),
	notice: (to, {message}) => note(to, message),
	error(to, {message: text, code}) {
		end(to, "failed")
		push(to, "error", {text, code})
	},
	interrupted(to) {
		end(to, "interrupted")
		note(to, "Stopped.")
	},
	complete(to, {text, usage, stopReason}) {
		if (text?.trim() && !to.said) push(to, "answer", {parts: [text], done: true})
		end(to, "done")
		to.runs?.push({...usage})
		if (!/^(end_turn|tool_use)?$/.test(stopReason ?? "")) note(to, STOPS[stopReason] || `The model stopped: ${stopReason}.`, "warn")
	},
	subagent(to, {inner: given, agentId: agent, seq}) {
		const inner = {...given, seq}
		const lane = to.lanes.get(agent) ?? push(to, "lane", {agent, inside: newConversation()})
		to.lanes.set(agent, lane)
		hear(lane.inside, inner)
		to.changed.add(lane)
		// Its questions are asked of the same people, and its files are the same.
		if (/^question_/.test(inner.event)) HEARD[inner.event](to, inner)
		if (inner.event === "tool_end") noteFile(to.files, lane.inside.calls.get(inner.callId))
	}
}

function hear(to, event) {
	to.now = event.seq || 0
	HEARD[event.event]?.(to, event)
	to.seq = Math.max(to.seq, to.now)
}

export const reduce = (state, event) => (hear(state, event), state)
export const fold = events => events.reduce(reduce, newState())

export function activity(state) {
	if (state.questions.size) return "asks"
	return state.running ? "running" : state.outcome === "failed" ? "failed" : "idle"
}

export function doing(state) {
	if (!state.running) return ""
	if (state.questions.size) return "Waiting for an answer"
	const busy = [...state.calls.values()].filter(call => call.state === "running")
	if (busy.length) return busy.length === 1 ? `Running ${busy[0].name}` : `Running ${busy.length} tools`
	if (state.writing) return `Calling ${state.writing}`
	return state.text ? "Answering" : "Thinking"
}

// Messages as events: a fork has no others.
export function* eventsOf(messages) {
	for (const {role, content, toolCalls = [], toolCallId, name, metadata} of messages) {
		if (role === "user") yield {event: "run_start", prompt: content}
		if (role === "assistant") yield {event: "complete", text: content}
		for (const call of toolCalls) yield {event: "tool_start", callId: call.id, toolName: call.name, arguments: JSON.parse(call.arguments || "{}")}
		if (role === "tool") yield {event: "tool_end", callId: toolCallId, toolName: name, outcome: metadata?.success === false ? "error" : "success", content}
	}
}
