// Requests, and events followed by number.

const KEY = "robota.token"
const FIRST_PAUSE = 400
const LONGEST_PAUSE = 10_000

let token = sessionStorage.getItem(KEY) || ""
let client = ""
let refused

export const whenRefused = action => (refused = action)

// As bytes: a header has no other letters.
export const callMe = name => (client = String.fromCharCode(...new TextEncoder().encode(name)))

export function use(given) {
	token = given
	sessionStorage.setItem(KEY, token)
}

export async function request(path, {headers, ...options} = {}) {
	const answer = await fetch(path, {...options, headers: {Authorization: `Bearer ${token}`, "Robota-Client": client, ...headers}, cache: "no-store", credentials: "omit"})
	const {status} = answer
	if (answer.ok) return answer
	if (status === 401) refused()
	const said = await answer.json().catch(() => null)
	throw Object.assign(new Error(said?.error?.message || `The server answered ${status}.`), {status})
}

export async function send(method, path, given) {
	const body = method === "GET" ? undefined : JSON.stringify(given)
	const answer = await request(path, {method, body, headers: {"Content-Type": "application/json", Accept: "application/json"}})
	return JSON.parse((await answer.text()) || "{}")
}

export const ask = path => send("GET", path).catch(() => null)

async function* readEvents(stream) {
	const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
	let rest = ""
	try {
		for (let got = await reader.read(); !got.done; got = await reader.read()) {
			const events = (rest + got.value).split("\n\n")
			rest = events.pop()
			for (const each of events) yield Object.fromEntries(each.split("\n").map(line => /^([^:]*):? ?(.*)/.exec(line).slice(1)))
		}
	} finally {
		reader.cancel().catch(() => {})
	}
}

export function follow(path, after, onevent, onstate) {
	const aborter = new AbortController()
	const {signal} = aborter
	const following = {after, wake() {}, leave: () => (aborter.abort(), following.wake())}

	function take({id, event, data}) {
		if (!data || id <= after) return
		following.after = after = +id || after
		try {
			data = JSON.parse(data)
		} catch {
			data = {event: "notice", message: `Unreadable: ${data}`} // asked for, it would come again
		}
		if (id) data.seq = after
		onevent({event, ...data}, !!id)
	}

	async function run() {
		for (let pause = FIRST_PAUSE; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
			try {
				const answer = await request(`${path}after=${after}`, {signal, headers: {Accept: "text/event-stream"}})
				onstate("live")
				for await (const each of readEvents(answer.body)) {
					if (signal.aborted) return
					pause = FIRST_PAUSE / 2
					if (each.event === "end") return onstate("ended")
					take(each)
				}
			} catch (error) {
				if (signal.aborted) return
				if ([401, 403, 404].includes(error.status)) return onstate("gone", error)
			}
			onstate("lost")
			await new Promise(resolve => {
				following.wake = resolve
				setTimeout(resolve, pause * (0.75 + Math.random() / 2))
			})
		}
	}

	run()
	return following
}
