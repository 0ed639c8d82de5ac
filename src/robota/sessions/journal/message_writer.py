"""Messages in the journal: each once, with what is left of its stream, and without what its result says."""

from __future__ import annotations

from zlib import crc32

from robota.core.events import HistoryMutation, ProviderResponseRaw
from robota.core.messages import AssistantMessage, Message, TokenUsage, ToolMessage
from robota.core.reply import usage_metadata
from robota.sessions.journal.call_writer import CallWriter
from robota.sessions.journal.records import EmptyReply, MessageRecord, Pieces
from robota.sessions.journal.stream_writer import StreamWriter
from robota.sessions.journal.writer import RecordWriter

ORDINARY_METADATA = frozenset(
    ("model", "responseId", "stopReason", "stopDetail", *usage_metadata(TokenUsage(1, 1, 1, 1, 1)))
)
"""What nearly every reply brings; none of it is the name of a secret."""


class MessageWriter:
    __slots__ = ("_calls", "_crc", "_stream", "_writer", "answer", "response", "run")

    def __init__(self, writer: RecordWriter, stream: StreamWriter, calls: CallWriter) -> None:
        self._writer = writer
        self._stream = stream
        self._calls = calls
        self._crc = 0
        self.answer = ""
        """The words of the last answer."""
        self.response: ProviderResponseRaw | None = None
        """A reply whose message has not come yet."""
        self.run = 0
        """The number of the run."""

    @property
    def checksum(self) -> str:
        """Of the ids of all messages since the model's view began."""
        return f"{self._crc:08x}"

    def restart(self) -> None:
        """The model's view begins anew."""
        self._crc = 0

    def note(self, message: Message) -> None:
        self._crc = crc32(message.id.encode(), self._crc)

    def is_reply(self, message: Message) -> bool:
        return self.response is not None and self.response.response is message

    def write(self, event: HistoryMutation, rest: Pieces | None) -> None:
        """`rest` is what was not written of the stream of a reply."""
        message, replied = event.message, self.is_reply(event.message)
        response, self.response = self.response, None
        self.note(message)
        if isinstance(message, ToolMessage) and self._write_result(message, event):
            return
        if isinstance(message, AssistantMessage):
            self.answer = message.content
            self._calls.begin_answer(message)
        record = MessageRecord(
            run=self.run, round=event.round, index=event.index, message=message, reply=replied, rest=rest
        )
        if response is not None and replied and response.error is not None:
            record.error = dict(response.error)
        if replied and isinstance(message, AssistantMessage) and self._is_plain(message):
            self._writer.write_clean(record)
        else:
            self._writer.write(record)

    def write_empty(self, event: ProviderResponseRaw, rest: Pieces | None) -> None:
        record = EmptyReply(run=self.run, round=event.round, message=event.response, rest=rest)
        record.error = None if event.error is None else dict(event.error)
        self._writer.write(record)

    def _write_result(self, message: ToolMessage, event: HistoryMutation) -> bool:
        record = self._calls.shorten(message, event.index, event.round)
        if record is None:
            return False
        if record.content is None and record.metadata is None and not record.parts:
            self._writer.write_clean(record, hold=True)  # what it says is in the journal: it can wait
            self._stream.start_moment()
        else:
            self._writer.write(record)
        return True

    def _is_plain(self, message: AssistantMessage) -> bool:
        """Whether a reply is known to be without secrets: by what its stream has shown, and by its facts. To
        look at a whole record costs more than to write it."""
        if not self._stream.has_shown(message) or not message.metadata.keys() <= ORDINARY_METADATA:
            return False
        words = [str(fact) for fact in message.metadata.values() if type(fact) is not int]
        for call in message.tool_calls:
            words += (call.id, call.name)
        return self._writer.redactor.are_plain(words)
