"""Tool calls of a Chat Completions stream, put together from their pieces.

Servers differ: calls come in many deltas or in one, with or without an index, an id, a whole name; arguments
are text, null or an object. A call is given out only when it is certain that nothing of it is missing.
"""

from __future__ import annotations

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject, ToolCall
from robota.core.provider import ToolInputChunk
from robota.providers.encoding import read_arguments


class _PartialCall:
    __slots__ = ("arguments", "id", "name", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class CallAssembly:
    __slots__ = ("_by_id", "_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_id: dict[str, _PartialCall] = {}

    def add(self, delta: JsonObject, position: int | None = None) -> ToolInputChunk:
        """Take one piece; `position` is given when all calls arrive whole in one list."""
        function = delta.get("function")
        if not isinstance(function, dict):
            function = {}
        call_id = delta.get("id")
        call_id = call_id if isinstance(call_id, str) else ""
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        index = delta.get("index") if position is None else position
        call = self._find(index if isinstance(index, int) else None, call_id, name)
        if call_id and not call.id:
            call.id = call_id
            self._by_id.setdefault(call_id, call)
        if name and not call.arguments:
            # a name may be repeated, sent again as far as it goes, or come in pieces
            call.name = name if name.startswith(call.name) else call.name + name
        text = _argument_text(function.get("arguments"))
        if text:
            call.arguments.append(text)
        return ToolInputChunk(call.number, text, call.id, call.name)

    def finished(self, *, trusted: bool) -> list[ToolCall]:
        """The calls in their order.

        If the server did not say that it wrote all it wanted (`trusted`), only those are kept whose arguments
        are a whole object. Otherwise broken arguments are the model's own, and the caller has to tell it.
        """
        calls = []
        for partial in self._calls:
            arguments = "".join(partial.arguments)
            if trusted or read_arguments(arguments) is not None:
                calls.append(ToolCall(partial.id, partial.name, arguments if arguments.strip() else "{}"))
        return calls

    def _find(self, index: int | None, call_id: str, name: str) -> _PartialCall:
        if index is not None:
            call = self._by_index.get(index)
        elif call_id:
            call = self._by_id.get(call_id)
        else:
            call = self._calls[-1] if self._calls else None
            if call is not None and name and call.arguments:
                call = None  # neither index nor id, but another name after the arguments: the next call
        if call is None or (call_id and call.id and call.id != call_id):
            # an index that is used again with another id is another call (some servers always say 0)
            call = _PartialCall(len(self._calls))
            self._calls.append(call)
            if index is not None:
                self._by_index[index] = call
        return call


def _argument_text(arguments: Json) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else encode(arguments).decode()
