// Events in, state out: live, reload and replay are this one path.
// `changed` holds the blocks that differ since they were last drawn. A subagent is a block with a conversation.

import {changeOf, tally} from "./diff.js"
import {taskLabel} from "./text.js"

const PROGRESS = 400

const newConversation = () => ({blocks: [], calls: new Map(), lanes: new Map(), tasks: new Map(), questions: new Map(), changed: new Set(), running: false, said: false, text: null, thought: null, writing: null, outcome: "", todos: [], seq: 0})

export const newState = () => ({...newConversation(), closed: null, queued: null, context: null, fills: [], runs: [], files: new Map(), model: "", mode: ""})

function push(to, event, kind, fields) {
	endText(to)
	const block = {kind, seq: event.seq || 0, ...fields}
	to.blocks.push(block)
	to.changed.add(block)
	return block
}

const note = (to, event, text, tone = "note") => push(to, event, "notice", {text, tone})

function endText(to) {
	for (const block of [to.text, to.thought]) {
		if (!block) continue
		block.done = true
		to.changed.add(block)
	}
	to.text = to.thought = to.writing = null
}

function callOf(to, event) {
	const known = to.calls.get(event.callId)
	if (known) return known
	endText(to)
	const last = to.blocks.at(-1)
	const same = last?.kind === "tools" && last.run === event.executionId && last.round === event.round
	const group = same ? last : push(to, event, "tools", {run: event.executionId, round: event.round, calls: [], clock: 0})
	const call = {id: event.callId, seq: event.seq, name: event.toolName, args: event.arguments || {}, state: "running", progress: [], group, begin: group.clock}
	group.calls.push(call)
	to.calls.set(call.id, call)
	to.changed.add(group)
	return call
}

function change(to, call, fields) {
	if (call) to.changed.add(Object.assign(call, fields).group)
}

function noteFile(files, call) {
	const made = files && call.state === "success" && changeOf(call)
	if (!made) return
	const known = files.get(made.path) || {path: made.path, added: 0, removed: 0, changes: []}
	const {added, removed} = tally(made.rows)
	files.set(made.path, {...known, added: known.added + added, removed: known.removed + removed, changes: [...known.changes, made]})
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
	run_start(to, event) {
		push(to, event, "prompt", {text: event.display || event.prompt || ""})
		Object.assign(to, {running: true, said: false, outcome: "", queued: null})
		to.name = event.agentName || to.name
	},
	text_delta(to, event) {
		if (!event.sequence && !event.text.trim()) return endText(to) // the mark between two rounds
		if (!to.text) to.text = push(to, event, "answer", {parts: []})
		to.said = true
		to.text.parts.push(event.text)
		to.changed.add(to.text)
	},
	reasoning_delta(to, event) {
		if (!to.thought) to.thought = push(to, event, "thinking", {parts: []})
		to.thought.parts.push(event.text)
		to.changed.add(to.thought)
	},
	tool_input_delta(to, event) {
		to.writing = event.toolName || to.writing
	},
	thinking(to, event) {
		to.running = event.isThinking
	},
	server_tool(to, event) {
		const args = event.input?.constructor === Object ? event.input : {input: event.input}
		push(to, event, "tools", {calls: [{id: event.seq, seq: event.seq, name: event.toolName, args, state: "success", progress: [], begin: 0}]})
	},
	provider_retry(to, event) {
		if (to.text) to.text.broken = true
		note(to, event, `${event.message} Trying again${event.delay ? ` in ${event.delay.toFixed(1)} s` : ""} (${event.attempt} of ${event.maxAttempts}).`, "warn")
	},
	tool_start: callOf,
	tool_progress(to, event) {
		const call = to.calls.get(event.callId)
		if (!call) return
		call.progress.push(event.text)
		if (call.progress.length > PROGRESS) call.progress.splice(0, PROGRESS / 2)
		change(to, call)
	},
	tool_end(to, event) {
		const call = callOf(to, event)
		const {outcome, content, error, metadata, duration = 0} = event
		const failed = outcome === "success" && metadata?.exitCode
		change(to, call, {args: event.arguments || call.args, state: failed ? "error" : outcome, content, error, metadata, duration})
		call.group.clock = Math.max(call.group.clock, call.begin + duration)
		noteFile(to.files, call)
		if (call.name === "TodoWrite" && Array.isArray(call.args.todos) && call.state === "success") to.todos = call.args.todos
	},
	context_update(to, event) {
		to.context = {used: event.usedTokens, max: event.maxTokens}
		to.fills?.push(event.usedTokens)
	},
	context_compact(to, event) {
		const [before, after] = [event.before, event.after].map(side => side?.usedPercentage ?? 0)
		push(to, event, "compact", {before, after, trigger: event.trigger, summary: event.summary})
	},
	model_change(to, event) {
		to.model = event.model
		note(to, event, [`${event.model} answers from here on.`, ...(event.notes || [])].join("\n"))
	},
	settings_change(to, event) {
		to.mode = event.values?.mode ?? event.values?.permissions?.mode ?? to.mode
	},
	question_asked(to, event) {
		endText(to)
		to.questions.set(event.question.id, event.question)
		change(to, to.calls.get(event.question.callId), {asks: true})
	},
	question_closed(to, event) {
		const question = to.questions.get(event.id)
		if (!question) return
		to.questions.delete(event.id)
		const {answer, by, reason} = event
		to.closed = {question, answer, by, reason}
		change(to, to.calls.get(question.callId), {asks: false, decision: to.closed})
		if (question.kind !== "permission") push(to, event, "decision", to.closed)
	},
	background_task_event(to, event) {
		const {task, change: what, text} = event
		const doing = /text_delta|tool_start/.test(what) ? text : to.tasks.get(task.taskId)?.doing
		if (what === "closed") to.tasks.delete(task.taskId)
		else to.tasks.set(task.taskId, {...task, doing})
		if (task.mode === "foreground" || !/^(started|completed|failed|cancelled)$/.test(what)) return
		note(to, event, `Background task ${what}: ${taskLabel(task)}${task.error ? `. ${task.error.message}` : ""}`, what === "failed" ? "error" : "")
	},
	prompt_queued(to, event) {
		to.queued = event.prompt
	},
	prompt_steered(to, event) {
		push(to, event, "prompt", {text: event.prompt})
	},
	notice(to, event) {
		note(to, event, event.message)
	},
	error(to, event) {
		end(to, "failed")
		push(to, event, "error", {text: event.message, code: event.code, recoverable: event.recoverable})
	},
	interrupted(to, event) {
		end(to, "interrupted")
		note(to, event, "Stopped.")
	},
	complete(to, event) {
		if (event.text?.trim() && !to.said) push(to, event, "answer", {parts: [event.text], done: true})
		end(to, "done")
		to.runs?.push({...event.usage})
		if (!/^(end_turn|tool_use)?$/.test(event.stopReason ?? "")) note(to, event, STOPS[event.stopReason] || `The model stopped: ${event.stopReason}.`, "warn")
	},
	subagent(to, event) {
		const inner = {...event.inner, seq: event.seq}
		const lane = to.lanes.get(event.agentId) ?? push(to, event, "lane", {agent: event.agentId, inside: newConversation()})
		to.lanes.set(event.agentId, lane)
		hear(lane.inside, inner)
		to.changed.add(lane)
		// A question of a subagent is asked of the same people, and what it changes are the same files.
		if (/^question_/.test(inner.event)) HEARD[inner.event](to, inner)
		if (inner.event === "tool_end") noteFile(to.files, lane.inside.calls.get(inner.callId))
	}
}

function hear(to, event) {
	HEARD[event.event]?.(to, event)
	to.seq = Math.max(to.seq, event.seq || 0)
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
