"""What a generation task is made of, and what the service tells about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.messages import ImagePart, ImageUriPart, Json, JsonObject, TextPart
from robota.providers.encoding import url_of
from robota.providers.wire.content import count_of, text_of

TaskStatus: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
Role: TypeAlias = Literal[
    "first_frame", "last_frame", "reference_image", "reference_video", "reference_audio"
]
ENDED: frozenset[TaskStatus] = frozenset(("succeeded", "failed", "cancelled", "expired"))

_KINDS = {"reference_video": "video_url", "reference_audio": "audio_url"}
_STATUSES = frozenset(get_args(TaskStatus))


class Reference(Struct, frozen=True):
    """A picture, video or sound for the model to go by: a web address, a data URL or an `asset://` id."""

    url: str
    role: Role = "reference_image"


TaskContent: TypeAlias = TextPart | ImagePart | ImageUriPart | Reference
"""A picture that is no `Reference` is the first frame."""


class Task(Struct, frozen=True, kw_only=True):
    """A task as the service last told of it."""

    id: str
    status: TaskStatus
    model: str = ""
    video_url: str | None = None
    """Where the video is, for a day."""
    last_frame_url: str | None = None
    error_code: str = ""
    error_message: str = ""
    total_tokens: int = 0
    created_at: int = 0
    updated_at: int = 0
    """Seconds since the epoch."""
    raw: JsonObject = {}
    """Everything the service said."""

    @property
    def is_over(self) -> bool:
        return self.status in ENDED


class TaskPage(Struct, frozen=True):
    tasks: tuple[Task, ...]
    total: int
    """How many there are on all pages."""


class TaskFailed(ProviderError):
    """A task ended without a result."""

    def __init__(self, message: str, task: Task, *, provider: str) -> None:
        super().__init__(message, provider=provider)
        self.task = task


def encode_content(prompt: str | Sequence[TaskContent]) -> list[JsonObject]:
    """The `content` of a new task."""
    parts: Sequence[TaskContent] = (TextPart(prompt),) if isinstance(prompt, str) else prompt
    content = [_encode_part(part) for part in parts]
    if not any(part.get("text", "-").strip() for part in content):
        raise ConfigurationError("A generation task needs a prompt or a picture; this one has neither.")
    return content


def _encode_part(part: TaskContent) -> JsonObject:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart() | ImageUriPart():
            return _reference(url_of(part), None)
        case Reference():
            return _reference(part.url, part.role)
        case _:
            raise ConfigurationError(
                f"A generation task is made of texts, pictures and references, not of {part!r:.80}."
            )


def _reference(url: str, role: Role | None) -> JsonObject:
    kind = _KINDS.get(role or "", "image_url")
    told: JsonObject = {"type": kind, kind: {"url": url}}
    return told if role is None else {**told, "role": role}


def read_task(told: Json, provider: str) -> Task:
    """The task in an answer of the service."""
    if not isinstance(told, dict) or not text_of(told, "id"):
        raise _unusable(provider, told)
    status = told.get("status", "queued")
    if status not in _STATUSES:
        raise ProviderError(
            f"{provider} says that task {told['id']} is {status!r:.40}, which this version does not know; "
            "look at it in the console of the service.",
            provider=provider,
        )
    content, error, usage = (_object(told.get(name)) for name in ("content", "error", "usage"))
    return Task(
        id=told["id"],
        status=status,
        model=text_of(told, "model"),
        video_url=text_of(content, "video_url") or None,
        last_frame_url=text_of(content, "last_frame_url") or None,
        error_code=text_of(error, "code"),
        error_message=text_of(error, "message"),
        total_tokens=count_of(usage, "total_tokens"),
        created_at=count_of(told, "created_at"),
        updated_at=count_of(told, "updated_at"),
        raw=told,
    )


def read_page(told: Json, provider: str) -> TaskPage:
    """A page of the list of tasks."""
    items = told.get("items") if isinstance(told, dict) else None
    if not isinstance(items, list):
        raise _unusable(provider, told)
    return TaskPage(tuple(read_task(item, provider) for item in items), count_of(told, "total"))


def _unusable(provider: str, told: Json) -> ProviderError:
    return ProviderError(
        f"{provider} answered with something that is no generation task ({told!r:.80}); check the base URL.",
        provider=provider,
    )


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
