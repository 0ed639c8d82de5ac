"""Reads a Chat Completions reply from its bytes, whatever of the format its server keeps to.

The reader does no I/O. Feed it what arrives and pass on what it returns; `over` says that nothing more is
worth reading. `finish` gives the chunks that are certain only at the end, tool calls among them, or raises:
then the reply was cut, and no unfinished call was given out. Text that came before a failure is not lost.

With `want_raw` each event of the stream leaves its JSON, as bytes without line breaks to be embedded in other
JSON as they are: on the text chunk it became, else in a `NativePayload` of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.errors import NetworkError, ProviderError, RobotaError
from robota.core.jsontext import decode, decode_leniently, encode
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage
from robota.core.provider import Chunk, MetadataChunk, NativePayload, ReasoningChunk, StopChunk, TextChunk
from robota.providers.chat_calls import CallAssembly
from robota.providers.http_errors import describe_error_event, hide_secrets
from robota.providers.sse import EventSplitter, ServerSentEvent

API_SURFACE = "openai-chat-completions"
MAX_BODY_BYTES = 64 * 1024 * 1024
_STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "error": "error",
}


class ReplyReader:
    def __init__(
        self,
        provider: str,
        *,
        want_raw: bool = False,
        request_id: str | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.done = False
        """The server said that this was all."""
        self.failure: RobotaError | None = None
        """What is wrong with the reply; `finish` will raise it."""
        self.cut: RobotaError | None = None
        """Why the connection ended, to be set from outside; of interest only if the reply is not complete."""
        self._provider = provider
        self._want_raw = want_raw
        self._request_id = request_id
        self._secrets = secrets
        self._splitter: EventSplitter | None = None
        self._body = bytearray()
        """What came before it was clear which kind of reply this is; all of it when it is plain JSON."""
        self._announced = False
        self._sequence = 0
        self._calls = CallAssembly()
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._usage: TokenUsage | None = None
        self._finish_reason = ""

    @property
    def over(self) -> bool:
        return self.done or self.failure is not None

    @property
    def complete(self) -> bool:
        """Whether the reply is whole, even if the connection should break now."""
        return self.failure is None and (self.done or bool(self._finish_reason))

    # --- bytes in, chunks out ----------------------------------------------------------------------------

    def feed(self, raw: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        try:
            if self._splitter is None:
                raw = self._recognise(raw)
            if self._splitter is not None:
                for event in self._splitter.feed(raw):
                    self._read_event(event, chunks)
                    if self.done:
                        break
        except RobotaError as error:
            self.failure = error
        return chunks

    def end(self) -> list[Chunk]:
        """No more bytes will come: what the last of them meant."""
        chunks: list[Chunk] = []
        if self.over:
            return chunks
        try:
            if self._splitter is not None:
                for event in self._splitter.flush():
                    self._read_event(event, chunks, last=True)
            elif self._body:
                self._read_body(bytes(self._body), chunks)
        except RobotaError as error:
            self.failure = self.cut or error  # half a body reads like nonsense
        return chunks

    def finish(self) -> list[Chunk]:
        """The chunks that close a whole reply; raises what went wrong with any other."""
        if self.failure is not None:
            raise self.failure
        if not self.complete:
            raise self.cut or NetworkError(
                f"{self._provider} closed the connection before its reply was complete; try again.",
                provider=self._provider,
                request_id=self._request_id,
            )
        word = self._finish_reason
        reason = _STOP_REASONS.get(word, "other" if word else "end_turn")
        ended_well = reason in ("end_turn", "tool_use")
        calls = self._calls.finished(trusted=ended_well and bool(word))
        if ended_well:
            reason = "tool_use" if calls else "end_turn"
        detail = word or None
        if self._refusal:
            reason, detail = "refusal", "".join(self._refusal)
        chunks: list[Chunk] = [ReasoningBlock("".join(self._reasoning))] if self._reasoning else []
        chunks += calls
        if self._usage is not None:
            chunks.append(self._usage)
        chunks.append(StopChunk(reason, detail))
        return chunks

    # --- which kind of reply ---------------------------------------------------------------------------

    def _recognise(self, raw: bytes) -> bytes:
        """Tell an event stream from plain JSON and from a web page by the first character: headers lie.

        Returns what has come so far.
        """
        self._body += raw
        first = self._body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if first == b"<":
            raise ProviderError(
                f"{self._provider} answered with a web page instead of a model's reply; check the base URL.",
                provider=self._provider,
                status=200,
                request_id=self._request_id,
            )
        if first and first not in b"{[":
            self._splitter = EventSplitter(provider=self._provider)
        elif len(self._body) > MAX_BODY_BYTES:
            raise self._refuse(f"more than {MAX_BODY_BYTES} bytes")
        return bytes(self._body) if self._splitter is not None else b""

    def _read_body(self, body: bytes, chunks: list[Chunk]) -> None:
        """A whole reply in one JSON object, from a server that does not stream."""
        reply, body = self._decode(body)
        if self._want_raw:
            payload = _embeddable(body, reply)
            chunks.append(NativePayload(kind="response", payload=payload, api_surface=API_SURFACE))
        if not isinstance(reply, dict):
            raise self._refuse(body)
        self._raise_error(reply)
        if not isinstance(reply.get("choices"), list):
            raise self._refuse(body)
        self._read_reply(reply, None, chunks)
        self.done = True

    # --- one event -----------------------------------------------------------------------------------

    def _read_event(self, event: ServerSentEvent, chunks: list[Chunk], *, last: bool = False) -> None:
        data = event.data
        try:
            reply = decode(data)
        except ValueError:
            if self._is_end(data) or last:  # a last event that cannot be read was cut
                return
            if event.event == "error":
                raise self._describe(data.decode("utf-8", "replace")) from None
            reply, data = self._decode(data)
        if not isinstance(reply, dict):
            return
        if event.event == "error" or "choices" not in reply or "error" in reply:
            self._raise_error(reply, named=event.event == "error")
        raw = None
        if self._want_raw:
            raw = _embeddable(data, reply)
            self._sequence += 1
        self._read_reply(reply, raw, chunks)

    def _read_reply(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> None:
        if not self._announced:
            self._announce(reply, chunks)
        usage = reply.get("usage")
        if usage:
            self._read_usage(usage)
        choices = reply.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            raw = self._read_choice(choices[0], raw, chunks)
        if raw is not None:
            sequence = self._sequence
            chunks.append(
                NativePayload(kind="stream_event", payload=raw, api_surface=API_SURFACE, sequence=sequence)
            )

    def _read_choice(self, choice: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        """Returns the raw bytes if no text chunk carries them."""
        delta = choice.get("delta")
        if isinstance(delta, dict):
            text = delta.get("content")
            if not isinstance(text, str):
                text = ""
            if text:
                chunks.append(TextChunk(text, raw))
                raw = None
            if len(delta) > 1 or not text:
                self._read_delta(delta, chunks)
        elif isinstance(choice.get("message"), dict):
            self._read_message(choice["message"], chunks)
        reason = choice.get("finish_reason")
        if reason:
            self._finish_reason = str(reason)
            self._read_usage(choice.get("usage"))  # where some servers put it
        return raw

    def _read_delta(self, delta: JsonObject, chunks: list[Chunk]) -> None:
        """All of a delta except plain text."""
        if isinstance(delta.get("content"), list):
            self._read_parts(delta["content"], chunks)
        self._read_reasoning(delta.get("reasoning_content") or delta.get("reasoning"), chunks)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refusal.append(refusal)
            chunks.append(TextChunk(refusal))
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            chunks += [self._calls.add(call) for call in calls if isinstance(call, dict)]
        if isinstance(delta.get("function_call"), dict):
            chunks.append(self._calls.add({"index": 0, "function": delta["function_call"]}))

    def _read_message(self, message: JsonObject, chunks: list[Chunk]) -> None:
        """A message that is whole: the same fields, but text and calls are not pieces."""
        text = message.get("content")
        if text and isinstance(text, str):
            chunks.append(TextChunk(text))
        self._read_delta({**message, "tool_calls": None}, chunks)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            whole = [call for call in calls if isinstance(call, dict)]
            chunks += [self._calls.add(call, position) for position, call in enumerate(whole)]

    def _read_parts(self, parts: list[Json], chunks: list[Chunk]) -> None:
        """Content as a list, as Mistral sends it: text, or thinking that is itself a list of texts."""
        for part in parts:
            if isinstance(part, dict):
                thinking = part.get("thinking")
                if isinstance(thinking, list):
                    thinking = "".join(
                        str(piece.get("text", "")) for piece in thinking if isinstance(piece, dict)
                    )
                self._read_reasoning(thinking, chunks)
                if isinstance(part.get("text"), str):
                    chunks.append(TextChunk(part["text"]))

    def _read_reasoning(self, text: Json, chunks: list[Chunk]) -> None:
        if text and isinstance(text, str):
            self._reasoning.append(text)
            chunks.append(ReasoningChunk(text))

    def _read_usage(self, usage: Json) -> None:
        """Input includes what was read from the cache, as this API counts it. The last report stands."""
        if isinstance(usage, dict):
            prompt = usage.get("prompt_tokens_details")
            output = usage.get("completion_tokens_details")
            self._usage = TokenUsage(
                _count(usage, "prompt_tokens"),
                _count(usage, "completion_tokens"),
                _count(prompt, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens"),
                _count(prompt, "cache_write_tokens"),
                _count(output, "reasoning_tokens"),
            )

    def _announce(self, reply: JsonObject, chunks: list[Chunk]) -> None:
        values = {"model": reply.get("model"), "responseId": reply.get("id")}
        values = {name: value for name, value in values.items() if value and isinstance(value, str)}
        if values:
            self._announced = True
            chunks.append(MetadataChunk(values))

    # --- what is wrong with it -------------------------------------------------------------------------

    def _is_end(self, data: bytes) -> bool:
        word = data.strip()
        self.done = self.done or word == b"[DONE]"
        return self.done or not word

    def _decode(self, data: bytes) -> tuple[Json, bytes]:
        """The value, and bytes that are valid JSON for it."""
        try:
            return decode(data), data
        except ValueError:
            try:
                value = decode_leniently(data)
            except ValueError:
                raise self._refuse(data) from None
        return value, encode(value)

    def _raise_error(self, reply: JsonObject, *, named: bool = False) -> None:
        error = reply.get("error")
        if error or named or reply.get("object") == "error":
            raise self._describe(error or reply)

    def _describe(self, error: Json) -> RobotaError:
        return describe_error_event(error, self._provider, request_id=self._request_id, secrets=self._secrets)

    def _refuse(self, what: bytes | str) -> ProviderError:
        text = what if isinstance(what, str) else " ".join(what[:200].decode("utf-8", "replace").split())
        return ProviderError(
            f"{self._provider} sent something that is no Chat Completions reply "
            f"({hide_secrets(text, self._secrets)}); check the base URL.",
            provider=self._provider,
            status=200,
            request_id=self._request_id,
        )


def _embeddable(data: bytes, value: Json) -> bytes:
    """The JSON of one value in one line."""
    return encode(value) if b"\n" in data or b"\r" in data else data


def _count(record: Json, name: str) -> int:
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, int) else 0
