// What a session looks like after an event. Events in, state out: live, reload and replay are this one path.
//
// A conversation is a list of blocks that only grows; `changed` holds those that differ since they were last
// drawn. A subagent is a block with a conversation of its own.

import { changeOf, tally } from "./diff.js";

const PROGRESS = 400;

export function newConversation() {
  return { blocks: [], calls: new Map(), lanes: new Map(), changed: new Set(), running: false, said: false, text: null, thought: null, writing: null, seq: 0 };
}

export function newState() {
  return {
    ...newConversation(),
    questions: new Map(),
    closed: null, // the question that was answered last, and by whom
    queued: null,
    context: null,
    fills: [], // how full the window was, in order
    runs: [],
    files: new Map(),
    todos: [],
    tasks: new Map(),
    model: "",
    mode: "",
    outcome: "", // how the last run ended
  };
}

function push(to, event, kind, fields) {
  endText(to);
  const block = { id: `${kind}-${event.seq}-${to.blocks.length}`, kind, seq: event.seq, ...fields };
  to.blocks.push(block);
  to.changed.add(block);
  return block;
}

function touch(to, block) {
  if (block) to.changed.add(block);
}

function endText(to) {
  for (const block of [to.text, to.thought]) {
    if (!block) continue;
    block.done = true;
    touch(to, block);
  }
  to.text = to.thought = to.writing = null;
}

function callOf(to, event) {
  const known = to.calls.get(event.callId);
  if (known) return known;
  const last = to.blocks.at(-1);
  const same = last?.kind === "tools" && last.run === event.executionId && last.round === event.round;
  const group = same ? last : push(to, event, "tools", { run: event.executionId, round: event.round, calls: [], clock: 0 });
  endText(to);
  const call = { id: event.callId, seq: event.seq, name: event.toolName, args: event.arguments || {}, state: "running", progress: [], group, begin: group.clock };
  group.calls.push(call);
  to.calls.set(call.id, call);
  touch(to, group);
  return call;
}

function noteChange(to, call) {
  if (!to.files || call.state !== "success") return;
  const change = changeOf(call);
  if (!change) return;
  const known = to.files.get(change.path) || { path: change.path, added: 0, removed: 0, changes: [] };
  const { added, removed } = tally(change.rows);
  known.added += added;
  known.removed += removed;
  known.changes.push({ change, seq: call.seq });
  to.files.set(change.path, known);
}

function end(to, event, outcome) {
  endText(to);
  to.running = false;
  to.outcome = outcome;
  for (const call of to.calls.values()) if (call.state === "running") Object.assign(call, { state: "error", error: "It never ended." }) && touch(to, call.group);
}

const HEARD = {
  run_start(to, event) {
    endText(to);
    Object.assign(to, { running: true, said: false, outcome: "", queued: null });
    if (event.agentName) to.name = event.agentName;
    push(to, event, "prompt", { text: event.display ?? event.prompt ?? "", images: event.images || 0 });
  },
  text_delta(to, event) {
    if (!event.sequence && !event.text.trim()) return endText(to); // the mark between two rounds
    if (to.thought) endText(to);
    to.said = true;
    to.text ??= push(to, event, "answer", { parts: [], done: false });
    to.text.parts.push(event.text);
    touch(to, to.text);
  },
  reasoning_delta(to, event) {
    if (to.text) endText(to);
    const thought = to.thought ?? push(to, event, "thinking", { parts: [], done: false });
    thought.parts.push(event.text);
    to.thought = thought;
    touch(to, thought);
  },
  tool_input_delta(to, event) {
    const same = to.writing && to.writing.index === event.index && to.writing.round === event.round;
    if (!same) to.writing = { index: event.index, round: event.round, name: event.toolName, size: 0 };
    to.writing.name ||= event.toolName;
    to.writing.size += (event.delta || "").length;
  },
  thinking(to, event) {
    to.running = event.isThinking;
  },
  server_tool(to, event) {
    const given = event.input && typeof event.input === "object" ? event.input : { input: event.input };
    const calls = [{ id: "", seq: event.seq, name: event.toolName, args: given, state: "success", progress: [], begin: 0 }];
    push(to, event, "tools", { run: "", round: -1, calls, clock: 0 });
  },
  provider_retry(to, event) {
    if (to.text) to.text.broken = true;
    const wait = event.delay ? ` in ${event.delay.toFixed(1)} s` : "";
    push(to, event, "notice", { tone: "warn", text: `${event.message} Trying again${wait} (attempt ${event.attempt} of ${event.maxAttempts}).` });
  },
  tool_start(to, event) {
    callOf(to, event);
  },
  tool_progress(to, event) {
    const call = to.calls.get(event.callId);
    if (!call) return;
    call.progress.push(event.text);
    if (call.progress.length > PROGRESS) call.progress.splice(0, PROGRESS / 2);
    touch(to, call.group);
  },
  tool_end(to, event) {
    const call = callOf(to, event);
    const failed = event.outcome === "success" && Boolean(event.metadata?.exitCode);
    Object.assign(call, { args: event.arguments || call.args, state: failed ? "error" : event.outcome, content: event.content || "", error: event.error, metadata: event.metadata || {}, duration: event.duration || 0 });
    call.group.clock = Math.max(call.group.clock, call.begin + call.duration);
    touch(to, call.group);
    noteChange(to, call);
    if (call.name === "TodoWrite" && call.state === "success" && Array.isArray(call.args.todos)) to.todos = call.args.todos;
  },
  context_update(to, event) {
    to.context = { used: event.usedTokens, max: event.maxTokens };
    to.fills?.push({ seq: event.seq, used: event.usedTokens });
  },
  context_compact(to, event) {
    const part = (side) => side?.usedPercentage ?? 0;
    push(to, event, "compact", { before: part(event.before), after: part(event.after), trigger: event.trigger, summary: event.summary || "" });
  },
  model_change(to, event) {
    to.model = event.model;
    push(to, event, "notice", { text: [`${event.model} answers from here on.`, ...(event.notes || [])].join("\n") });
  },
  settings_change(to, event) {
    const mode = event.values?.mode ?? event.values?.permissions?.mode ?? event.values?.permissions?.defaultMode;
    if (typeof mode === "string") to.mode = mode;
  },
  question_asked(to, event) {
    endText(to);
    to.questions?.set(event.question.id, { ...event.question, seq: event.seq });
    const call = to.calls.get(event.question.callId);
    if (call) touch(to, Object.assign(call, { asks: true }).group);
  },
  question_closed(to, event) {
    const question = to.questions?.get(event.id);
    if (!question) return;
    to.questions.delete(event.id);
    to.closed = { question, answer: event.answer, by: event.by, reason: event.reason, seq: event.seq };
    const call = to.calls.get(question.callId);
    if (call) touch(to, Object.assign(call, { asks: false, decision: { ...to.closed } }).group);
    if (question.kind !== "permission") push(to, event, "decision", { question, answer: event.answer, by: event.by, reason: event.reason });
  },
  background_task_event(to, event) {
    const { task, change } = event;
    const known = to.tasks.get(task.taskId);
    const doing = change === "text_delta" || change === "tool_start" ? event.text : known?.doing || "";
    to.tasks.set(task.taskId, { ...task, doing });
    if (change === "closed") to.tasks.delete(task.taskId);
    if ((task.mode || "background") !== "background" || !["started", "completed", "failed", "cancelled"].includes(change)) return;
    const label = task.label || task.command || task.agentType || task.prompt || task.taskId;
    push(to, event, "notice", { tone: change === "failed" ? "error" : "", text: `Background task ${change}: ${label}${task.error ? `. ${task.error.message}` : ""}` });
  },
  prompt_queued(to, event) {
    to.queued = event.prompt;
  },
  notice(to, event) {
    push(to, event, "notice", { text: event.message });
  },
  error(to, event) {
    end(to, event, "failed");
    push(to, event, "error", { text: event.message, code: event.code, recoverable: event.recoverable });
  },
  interrupted(to, event) {
    end(to, event, "interrupted");
    push(to, event, "notice", { tone: "stop", text: "Stopped." });
  },
  complete(to, event) {
    if (event.text?.trim() && !to.said) push(to, event, "answer", { parts: [event.text], done: true });
    end(to, event, "done");
    to.runs?.push({ ...event.usage, rounds: event.rounds, seq: event.seq });
    if (event.stopReason && !["end_turn", "tool_use"].includes(event.stopReason)) push(to, event, "notice", { tone: "warn", text: ENDS[event.stopReason] || `The model stopped: ${event.stopReason}.` });
  },
  subagent(to, event) {
    const inner = { ...event.inner, seq: event.seq };
    let lane = to.lanes.get(event.agentId);
    if (!lane) {
      lane = push(to, event, "lane", { agent: event.agentId, inside: newConversation() });
      to.lanes.set(event.agentId, lane);
    }
    hear(lane.inside, inner);
    touch(to, lane);
    // A question of a subagent is asked of the same people, and what it changes are the same files.
    if (inner.event?.startsWith("question_") && to.questions) HEARD[inner.event](to, inner);
    if (inner.event === "tool_end") noteChange(to, lane.inside.calls.get(inner.callId));
  },
};

const ENDS = {
  max_tokens: "The answer was cut: it reached the longest length the model may write.",
  max_rounds: "Stopped after as many rounds as one prompt may take. Say “go on” to continue.",
  refusal: "The model declined to answer.",
  content_filter: "The service withheld the answer.",
  context_overflow: "The conversation no longer fits the model's window. /compact makes room.",
  repeated_failure: "Stopped: the same call failed again and again.",
};

function hear(to, event) {
  const handler = HEARD[event.event];
  if (handler) handler(to, event);
  to.seq = Math.max(to.seq, event.seq || 0);
}

export function reduce(state, event) {
  hear(state, event);
  return state;
}

export const fold = (events) => events.reduce(reduce, newState());

// What goes on, in a word for people.
export function activity(state) {
  if (state.questions.size) return "asks";
  if (!state.running) return state.outcome === "failed" ? "failed" : "idle";
  return "running";
}

export function doing(state) {
  if (!state.running) return "";
  const busy = [...state.calls.values()].filter((call) => call.state === "running");
  if (state.questions.size) return "Waiting for your answer";
  if (busy.length) return busy.length === 1 ? `Running ${busy[0].name}` : `Running ${busy.length} tools`;
  if (state.writing?.name) return `Writing a call of ${state.writing.name}`;
  if (state.text) return "Answering";
  return "Thinking";
}
