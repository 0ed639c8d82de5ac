// The way to the server: requests, and the events of a session followed by number across any interruption.

const KEY = "robota.token";
const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 10_000;

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

export class Connection {
  constructor() {
    this.token = sessionStorage.getItem(KEY) || "";
    this.onunauthorized = () => {};
  }

  use(token) {
    this.token = token;
    sessionStorage.setItem(KEY, token);
  }

  async fetch(path, options = {}) {
    const headers = { ...options.headers };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
    if (answer.ok) return answer;
    if (answer.status === 401) this.onunauthorized();
    const said = await answer.json().catch(() => null);
    const error = said?.error || {};
    throw new Refused(answer.status, error.code || "", error.message || `The server answered ${answer.status}.`);
  }

  async get(path) {
    return (await this.fetch(path, { headers: { Accept: "application/json" } })).json();
  }

  // What this server may not offer: `null` instead of an error.
  async ask(path) {
    return this.get(path).catch(() => null);
  }

  async send(method, path, body) {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    const answer = await this.fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    return text ? JSON.parse(text) : null;
  }

  post(path, body = {}) {
    return this.send("POST", path, body);
  }
}

// Server-sent events as they come; several lines of data are one text.
export async function* readEvents(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { data: [] };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop();
      for (const line of lines) {
        if (!line) {
          if (event.data.length || event.name) yield { name: event.name || "message", id: event.id, data: event.data.join("\n") };
          event = { data: [] };
          continue;
        }
        const at = line.indexOf(":");
        const field = at < 0 ? line : line.slice(0, at);
        const said = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
        if (field === "data") event.data.push(said);
        else if (field === "event") event.name = said;
        else if (field === "id") event.id = said;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Follows one session until it is told to leave.
export class Following {
  constructor(connection, id, { onevent, onstate, after = 0 }) {
    Object.assign(this, { connection, id, onevent, onstate, after });
    this.aborter = new AbortController();
    this.wake = null;
    this.run();
  }

  leave() {
    this.aborter.abort();
    this.wake?.();
  }

  // Tries again at once: somebody is looking, or the network is back.
  hurry() {
    this.wake?.();
  }

  async run() {
    let pause = FIRST_PAUSE;
    const { signal } = this.aborter;
    while (!signal.aborted) {
      try {
        const path = `/sessions/${encodeURIComponent(this.id)}/events?after=${this.after}`;
        const answer = await this.connection.fetch(path, { signal, headers: { Accept: "text/event-stream" } });
        this.onstate("live");
        for await (const each of readEvents(answer.body)) {
          pause = FIRST_PAUSE;
          if (each.name === "end") {
            this.onstate("ended");
            return;
          }
          this.take(each);
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refused && [401, 403, 404].includes(error.status)) {
          this.onstate("gone", error);
          return;
        }
      }
      this.onstate("lost");
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, pause * (0.75 + Math.random() / 2));
      });
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  take(each) {
    let event;
    try {
      event = JSON.parse(each.data);
    } catch {
      return; // not one of ours
    }
    if (!event || typeof event !== "object") return;
    event.event ??= each.name;
    const numbered = each.id !== undefined && each.id !== "";
    if (numbered) {
      const number = Number(event.seq ?? String(each.id).split("-").pop());
      if (!(number > this.after)) return;
      event.seq = this.after = number;
    }
    this.onevent(event, numbered);
  }
}
