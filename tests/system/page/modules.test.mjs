// The parts of the page that need no browser.

import assert from "node:assert/strict"
import {createServer} from "node:http"
import {test} from "node:test"
import {pathToFileURL} from "node:url"

const load = name => import(pathToFileURL(`${process.env.WEB}/${name}.js`))
const {fold, newState, reduce, activity, doing} = await load("reducer")
const {makeSplitter, split} = await load("splitter")
const {exact, output, plain} = await load("text")
const {parse, tally} = await load("diff")
globalThis.sessionStorage = {getItem: () => null}
const {follow} = await load("connection")

const run = {executionId: "r"}
const DIFF = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"
const EVENTS = [
	{event: "run_start", ...run, prompt: "long words", display: "typed"},
	{event: "reasoning_delta", ...run, text: "hm"},
	{event: "text_delta", ...run, text: "Let me ", sequence: 1, round: 1},
	{event: "text_delta", ...run, text: "see.", sequence: 2, round: 1},
	{event: "tool_start", ...run, callId: "1", toolName: "Read", arguments: {file_path: "a"}, round: 1},
	{event: "tool_start", ...run, callId: "2", toolName: "Edit", arguments: {file_path: "a"}, round: 1},
	{event: "question_asked", question: {id: "q", kind: "permission", callId: "2"}},
	{event: "question_closed", id: "q", answer: {allow: true}, by: "terminal", reason: "answered"},
	{event: "tool_end", ...run, callId: "1", toolName: "Read", outcome: "success", content: "x", duration: 2, round: 1},
	{event: "tool_end", ...run, callId: "2", toolName: "Edit", arguments: {file_path: "a"}, outcome: "success", metadata: {diff: DIFF}, duration: 1, round: 1},
	{event: "text_delta", ...run, text: "\n\n", sequence: 0, round: 2},
	{event: "subagent", agentId: "s", inner: {event: "run_start", agentName: "scout", prompt: "look"}},
	{event: "subagent", agentId: "s", inner: {event: "complete", text: "seen"}},
	{event: "text_delta", ...run, text: "Done.", sequence: 1, round: 2},
	{event: "complete", ...run, text: "Done.", usage: {inputTokens: 3, outputTokens: 1}, stopReason: "end_turn"},
].map((event, at) => ({...event, seq: at + 1}))

const outline = state => state.blocks.map(({kind, seq, parts}) => [kind, seq, parts?.join("")])

test("events become blocks, and calls of one answer one block", () => {
	const state = fold(EVENTS)
	assert.deepEqual(outline(state).map(([kind]) => kind), ["prompt", "thinking", "answer", "tools", "lane", "answer"])
	assert.equal(state.blocks[0].text, "typed")
	assert.deepEqual(state.blocks[3].calls.map(call => [call.name, call.state, call.begin]), [["Read", "success", 0], ["Edit", "success", 0]])
	assert.equal(state.blocks[3].calls[1].decision.by, "terminal")
	assert.deepEqual([state.files.get("a").added, state.files.get("a").removed], [1, 1])
	assert.equal(state.lanes.get("s").inside.name, "scout")
	assert.equal(activity(state), "idle")
})

test("a state that is reached in two steps is the one that is reached at once", () => {
	for (let at = 0; at <= EVENTS.length; at++) {
		const state = EVENTS.slice(0, at).reduce(reduce, newState())
		assert.deepEqual(outline(EVENTS.slice(at).reduce(reduce, state)), outline(fold(EVENTS)))
	}
	assert.equal(activity(fold(EVENTS.slice(0, 7))), "asks")
	assert.equal(doing(fold(EVENTS.slice(0, 6))), "Running 2 tools")
})

test("how a text is cut into deltas makes no difference to its blocks", () => {
	const text = "# Title\n\nwords\nmore\n\n- a\n  - b\n\n  c\n- d\n\n```py\nx = 1\n\n# no title\n```\n| a |\n|---|\n| 1 |\n\n> said\n"
	const whole = split(text)
	assert.deepEqual(whole.map(({kind}) => kind), ["heading", "text", "list", "code", "table", "quote"])
	for (const size of [1, 2, 7]) {
		const splitter = makeSplitter()
		const pieces = []
		for (let at = 0; at < text.length; at += size) pieces.push(...splitter.feed(text.slice(at, at + size)))
		assert.deepEqual([...pieces, ...splitter.finish()], whole)
	}
})

test("no piece is longer than a step may take", () => {
	for (const text of ["x".repeat(200_000), "- item\n".repeat(5000), "word\n".repeat(5000), "```\n" + "code\n".repeat(5000), "|a|\n|-|\n" + "|1|\n".repeat(5000)]) {
		const pieces = split(text)
		assert.ok(pieces.length > 10)
		assert.ok(pieces.every(piece => piece.text.length <= 13_000 && piece.text.split("\n").length <= 121))
	}
})

test("what hides or turns text is written out", () => {
	assert.equal(plain("a\u202eb\x07\x1b[31m"), "a\\u202eb␇␛[31m")
	assert.equal(exact("rm\u200b -rf"), "rm\\u200b -rf")
	assert.equal(output("\x1b[31mred\x1b[0m\n10 %\r100 %\n"), "red\n100 %\n")
})

test("a difference has the numbers of both sides", () => {
	const rows = parse(DIFF)
	assert.deepEqual(rows.map(({kind, before, after}) => [kind, before, after]), [["hunk", undefined, undefined], ["same", 1, 1], ["del", 2, undefined], ["add", undefined, 2]])
	assert.deepEqual(tally(rows), {added: 1, removed: 1})
})

test("an event that cannot be read is told and passed over, and not asked for again", async () => {
	const asked = []
	const server = createServer((request, answer) => {
		asked.push(request.url)
		if (asked.length > 1) answer.end("event: end\ndata: {}\n\n")
		else answer.write(['{"text":"a"}', '{"text":', '{"text":"b"}'].map((data, at) => `id: ${at + 1}\nevent: text_delta\ndata: ${data}\n\n`).join(""))
	})
	await new Promise(done => server.listen(0, "127.0.0.1", done))
	const heard = []
	let following
	await new Promise(done => {
		const hear = event => heard.push([event.seq, event.event, event.text]) === 3 && done()
		following = follow(`http://127.0.0.1:${server.address().port}/events?`, 0, hear, state => state === "ended" && done())
	})
	following.leave()
	server.closeAllConnections()
	server.close()
	assert.deepEqual(asked, ["/events?after=0"])
	assert.deepEqual(heard, [[1, "text_delta", "a"], [2, "notice", undefined], [3, "text_delta", "b"]])
})

test("nothing is heard of what was left, though it had come already", async () => {
	const server = createServer((request, answer) => {
		answer.write([1, 2, 3].map(id => `id: ${id}\nevent: text_delta\ndata: {"text":"${id}"}\n\n`).join(""))
	})
	await new Promise(done => server.listen(0, "127.0.0.1", done))
	const heard = []
	await new Promise(done => {
		const hear = event => {
			heard.push(event.seq)
			following.leave()
			setImmediate(done) // after all that was waiting
		}
		const following = follow(`http://127.0.0.1:${server.address().port}/events?`, 0, hear, () => {})
	})
	server.closeAllConnections()
	server.close()
	assert.deepEqual(heard, [1])
})
