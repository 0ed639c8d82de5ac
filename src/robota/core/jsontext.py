"""JSON text to values and back: the one pair of functions to exchange when another library is to do it; and
values of others, taken only if they are what they should be.

`decode` is strict: what it accepts is valid JSON in valid UTF-8, so its input may be spliced into other JSON
text. `decode_leniently` is for what servers send all the same. Whatever is wrong, both raise `ValueError`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from robota.core.messages import Json, JsonObject

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes | str) -> Json:
    """The value that valid JSON text stands for."""
    try:
        return _decode(data)
    except RecursionError as error:
        raise ValueError("The JSON text is nested too deeply.") from error


def is_json(data: bytes | str) -> bool:
    try:
        decode(data)
    except ValueError:
        return False
    return True


def encode(value: Json) -> bytes:
    """A value as compact JSON in UTF-8; half characters (lone surrogates) become question marks."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        import json  # noqa: PLC0415 - only for texts that are no Unicode, such as undecodable file names

        plain = msgspec.to_builtins(value, enc_hook=_decode_raw)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _decode_raw(value: object) -> Json:
    if isinstance(value, msgspec.Raw):
        return decode(bytes(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode_leniently(data: bytes) -> Json:
    """Like `decode`, but takes NaN, infinities, broken UTF-8 and half characters, which become U+FFFD."""
    import json  # noqa: PLC0415 - a server that needs this is rare

    try:
        value = json.loads(data.decode("utf-8-sig", "replace"))
    except RecursionError as error:
        raise ValueError("The JSON text is nested too deeply.") from error
    return _mend(value)


def _mend(value: Any) -> Json:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return value


def text_of(value: Json) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def object_of(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def list_of(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def objects_of(value: Json) -> list[JsonObject]:
    """The objects in a list."""
    return [item for item in list_of(value) if isinstance(item, dict)]
