// Requests, and the events of a session followed by number across any interruption.

const KEY = "robota.token"
const FIRST_PAUSE = 400
const LONGEST_PAUSE = 10_000

export class Connection {
	token = sessionStorage.getItem(KEY) || ""
	name = ""

	constructor(onunauthorized) {
		this.onunauthorized = onunauthorized
	}

	// As bytes: a header has no other letters.
	set client(name) {
		this.name = String.fromCharCode(...new TextEncoder().encode(name))
	}

	use(token) {
		this.token = token
		sessionStorage.setItem(KEY, token)
	}

	async fetch(path, {headers, ...options}) {
		const answer = await fetch(path, {...options, headers: {Authorization: `Bearer ${this.token}`, "Robota-Client": this.name, ...headers}, cache: "no-store", credentials: "omit"})
		if (answer.ok) return answer
		if (answer.status === 401) this.onunauthorized()
		const said = await answer.json().catch(() => null)
		throw Object.assign(new Error(said?.error?.message || `The server answered ${answer.status}.`), {status: answer.status})
	}

	async send(method, path, given) {
		const body = method === "GET" ? undefined : JSON.stringify(given)
		const answer = await this.fetch(path, {method, body, headers: {"Content-Type": "application/json", Accept: "application/json"}})
		return JSON.parse((await answer.text()) || "{}")
	}

	ask(path) {
		return this.send("GET", path).catch(() => null)
	}
}

export async function* readEvents(stream) {
	const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
	let rest = ""
	let event = {data: ""}
	try {
		for (;;) {
			const {value, done} = await reader.read()
			if (done) return
			const lines = (rest + value).split(/\r?\n/)
			rest = lines.pop()
			for (const line of lines) {
				if (line) {
					const [, field, said] = /^([^:]*):? ?(.*)$/.exec(line)
					event[field] = field === "data" && event.data ? `${event.data}\n${said}` : said
				} else {
					if (event.data || event.event) yield event
					event = {data: ""}
				}
			}
		}
	} finally {
		reader.cancel().catch(() => {})
	}
}

export class Following {
	aborter = new AbortController()
	wake = () => {}

	constructor(connection, path, {onevent, onstate, after}) {
		Object.assign(this, {connection, path, onevent, onstate, after})
		this.run()
	}

	leave() {
		this.aborter.abort()
		this.wake()
	}

	async run() {
		const {signal} = this.aborter
		for (let pause = FIRST_PAUSE; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
			try {
				const answer = await this.connection.fetch(`${this.path}after=${this.after}`, {signal, headers: {Accept: "text/event-stream"}})
				this.onstate("live")
				for await (const each of readEvents(answer.body)) {
					pause = FIRST_PAUSE / 2
					if (each.event === "end") return this.onstate("ended")
					this.take(each)
				}
			} catch (error) {
				if (signal.aborted) return
				if ([401, 403, 404].includes(error.status)) return this.onstate("gone", error)
			}
			this.onstate("lost")
			await new Promise(resolve => {
				this.wake = resolve
				setTimeout(resolve, pause * (0.75 + Math.random() / 2))
			})
		}
	}

	take({id, event: name, data}) {
		let event
		try {
			event = {event: name, ...JSON.parse(data)}
		} catch {
			return
		}
		const numbered = Boolean(id)
		if (numbered) {
			event.seq ??= Number(id)
			if (!(event.seq > this.after)) return
			this.after = event.seq
		}
		this.onevent(event, numbered)
	}
}
