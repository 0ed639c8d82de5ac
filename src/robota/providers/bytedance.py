"""ByteDance's generation tasks: videos made from words and pictures. This is no chat provider.

`ByteDanceTasks` makes them, looks after them and waits for what comes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args
from urllib.parse import quote, urlencode

from msgspec import Struct

from robota.core.closing import AsyncClosing
from robota.core.errors import ConfigurationError, NetworkError, ProviderError, RateLimitError
from robota.core.jsontext import encode, object_of
from robota.core.messages import ImagePart, ImageUriPart, Json, JsonObject, TextPart
from robota.core.ports import REAL_WORLD, Ports
from robota.core.retry import is_retryable
from robota.providers.encoding import url_of
from robota.providers.service import endpoint
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.reply import count_of, text_of

if TYPE_CHECKING:
    import httpx2

BASE_URL = "https://ark.ap-southeast.bytepluses.com/api/v3"
PATH = "/contents/generations/tasks"
REQUEST_SECONDS = 60.0
INTERVAL_SECONDS = 5.0
LONGEST_INTERVAL = 30.0
GROWTH = 1.5
"""Each wait is so much longer than the one before."""
WAIT_SECONDS = 1800.0
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
    if not isinstance(told, dict) or not text_of(told, "id"):
        raise _unusable(provider, told)
    status = told.get("status", "queued")
    if status not in _STATUSES:
        raise ProviderError(
            f"{provider} says that task {told['id']} is {status!r:.40}, which this version does not know; "
            "look at it in the console of the service.",
            provider=provider,
        )
    content, error, usage = (object_of(told.get(name)) for name in ("content", "error", "usage"))
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
    items = object_of(told).get("items")
    if not isinstance(items, list):
        raise _unusable(provider, told)
    return TaskPage(tuple(read_task(item, provider) for item in items), count_of(told, "total"))


def _unusable(provider: str, told: Json) -> ProviderError:
    return ProviderError(
        f"{provider} answered with something that is not a generation task ({told!r:.80}); "
        "check the base URL.",
        provider=provider,
    )


class ByteDanceTasks(AsyncClosing):
    """The generation tasks of one account.

    A task is made with `create` and is under way on the service until it has succeeded, failed or expired;
    `wait` looks at it now and then. Leaving `wait` early, by a cancellation too, does not end the task:
    `cancel` does. The result is a web address that the service keeps for a day.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = BASE_URL,
        model: str | None = None,
        *,
        name: str = "bytedance",
        timeout: float = REQUEST_SECONDS,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        ports: Ports = REAL_WORLD,
    ) -> None:
        if not (api_key or "").strip():
            raise ConfigurationError(f"{name!r} needs an api_key; the console of the service makes one.")
        self.name = name
        self.model = model
        """Used by tasks that name none."""
        self._timeout = timeout
        self._ports = ports
        self._channel = HttpChannel(
            endpoint(base_url, PATH),
            {"accept": "application/json", **(headers or {})},
            provider=name,
            key=api_key,
            transport=transport,
        )

    # --- one request each -----------------------------------------------------------------------------

    async def create(
        self,
        prompt: str | Sequence[TaskContent],
        *,
        model: str | None = None,
        options: Mapping[str, Json] | None = None,
    ) -> Task:
        """A new task. `options` are more fields of the request, such as `resolution`, `ratio`, `duration`."""
        chosen = model or self.model
        if not chosen:
            raise ConfigurationError(f"A task of {self.name!r} needs a model: name one here or there.")
        body = encode({"model": chosen, "content": encode_content(prompt), **(options or {})})
        told = await self._ask("POST", body=body, model=chosen)
        return read_task({"model": chosen, **told} if isinstance(told, dict) else told, self.name)

    async def get(self, task: Task | str) -> Task:
        """The task as it is now."""
        return read_task(await self._ask("GET", _below(task)), self.name)

    async def list(
        self,
        *,
        page: int = 1,
        size: int = 20,
        status: TaskStatus | None = None,
        model: str | None = None,
        ids: Sequence[str] = (),
    ) -> TaskPage:
        """The tasks of the last days, the newest first."""
        wanted: list[tuple[str, str | int]] = [("page_num", page), ("page_size", size)]
        wanted += [("filter.status", status)] if status else []
        wanted += [("filter.model", model)] if model else []
        wanted += [("filter.task_ids", id) for id in ids]
        return read_page(await self._ask("GET", f"?{urlencode(wanted)}"), self.name)

    async def cancel(self, task: Task | str) -> None:
        """Stop a task; the service can do that while it is queued, and refuses once it runs.

        A task that is over is not touched, because the same request would delete it: see `delete`.
        """
        known = await self.get(task)
        if known.is_over:
            raise ProviderError(
                f"Task {known.id} is {known.status}, so there is nothing to cancel.", provider=self.name
            )
        await self.delete(known)

    async def delete(self, task: Task | str) -> None:
        """Remove a task that is over, with its result, or cancel one that is queued."""
        await self._ask("DELETE", _below(task))

    # --- waiting -----------------------------------------------------------------------------------------

    async def wait(
        self,
        task: Task | str,
        *,
        interval: float = INTERVAL_SECONDS,
        timeout: float | None = WAIT_SECONDS,
        on_progress: Callable[[Task], object] | None = None,
    ) -> Task:
        """The task once it has succeeded; any other end raises `TaskFailed`.

        It is looked at after `interval` seconds, then at growing intervals. A network or a service that fails
        for a moment only makes the next look later. `on_progress` sees each state the task was found in.
        """
        ports = self._ports
        deadline = None if timeout is None else ports.monotonic() + timeout
        pause = max(interval, 0.0)
        while True:
            patience, known = 0.0, None
            try:
                known = await self.get(task)
            except (NetworkError, RateLimitError, ProviderError) as error:
                if not isinstance(error, NetworkError) and not is_retryable(error):
                    raise  # a later look would not go better
                patience = error.retry_after or 0.0
            if known is not None:
                if on_progress is not None:
                    on_progress(known)
                if known.is_over:
                    return self._result(known)
            pause_now = max(pause, patience)
            if deadline is not None and ports.monotonic() + pause_now > deadline:
                raise ProviderError(
                    f"Task {_id(task)} is not over after {timeout:g} seconds; wait longer, or cancel it.",
                    provider=self.name,
                )
            await ports.sleep(pause_now)
            pause = min(pause * GROWTH, max(LONGEST_INTERVAL, interval))

    def _result(self, task: Task) -> Task:
        if task.status == "succeeded":
            return task
        reason = ": ".join(filter(None, (task.error_code, task.error_message))) or "no reason given"
        said = (
            f"Task {task.id} is {task.status} ({reason.rstrip('.')}); ask for something else, or try again."
        )
        raise TaskFailed(said, task, provider=self.name)

    async def _ask(self, method: str, below: str = "", *, body: bytes = b"", model: str = "") -> Json:
        return await self._channel.ask(method, below, body=body, model=model, timeout=self._timeout)

    async def aclose(self) -> None:
        await self._channel.aclose()


def _id(task: Task | str) -> str:
    return task if isinstance(task, str) else task.id


def _below(task: Task | str) -> str:
    name = _id(task)
    if not name.strip():
        raise ConfigurationError("The id of a task must not be empty.")
    return f"/{quote(name, safe='')}"
