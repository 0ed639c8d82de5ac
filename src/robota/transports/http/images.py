"""The images of past prompts, for those who draw a conversation again."""

from __future__ import annotations

import base64
import binascii
from itertools import islice

from anyio import to_thread
from msgspec import Struct
from starlette.responses import Response
from starlette.types import ASGIApp

from robota.core.errors import SessionNotFoundError
from robota.sdk.past_images import PastImages
from robota.transports.blocks import IMAGES
from robota.transports.http.call import Call
from robota.transports.http.replies import HEADERS, HttpError, reply
from robota.transports.http.route import Route, at_both
from robota.transports.http.turns import EventsQuery

MOST_IMAGES = 1_000


class ImageFacts(Struct, frozen=True, kw_only=True, rename="camel"):
    """An image of a prompt, without its bytes."""

    event: int
    """The number of the `run_start` that the prompt led to."""
    index: int
    media_type: str
    size: int
    """Bytes, about."""


class ImageList(Struct, frozen=True):
    """The images of a session's prompts, in order."""

    images: tuple[ImageFacts, ...] = ()


async def list_images(call: Call) -> ASGIApp:
    found = await to_thread.run_sync(_list, await _images(call), call.query.after)
    return reply(ImageList(tuple(found)))


def _list(images: PastImages, after: int) -> list[ImageFacts]:
    return [
        ImageFacts(
            event=each.event,
            index=each.index,
            media_type=each.part.mime_type,
            size=len(each.part.data) * 3 // 4,
        )
        for each in islice(images.behind(max(after, 0)), MOST_IMAGES)
    ]


async def show_image(call: Call) -> ASGIApp:
    event, index = (_number(call.request.path_params[name]) for name in ("event", "index"))
    images = await _images(call)
    image = await to_thread.run_sync(images.find, event, index)
    if image is None:
        raise HttpError(404, "no_image", f"Event {event} began with no image {index}.")
    try:
        data = base64.b64decode(image.part.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise HttpError(404, "no_image", f"The image {index} of event {event} is damaged.") from error
    kind = image.part.mime_type if image.part.mime_type in IMAGES else "application/octet-stream"
    return Response(data, headers={**HEADERS, "content-security-policy": "sandbox"}, media_type=kind)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise HttpError(404, "no_image", "An image has the number of an event, and its place in the prompt.")
    return int(text)


async def _images(call: Call) -> PastImages:
    """Of the session, which is not opened for it."""
    host, id = call.host, call.session_id
    hosted = await host.first() if id is None else await call.find()
    if hosted is None and not host.is_kept(id or ""):
        raise SessionNotFoundError(f"There is no session {id}.")
    return PastImages(None if hosted is None else hosted.session, host.store, id or "")


ROUTES = at_both(
    Route(
        method="GET", path="/images", handler=list_images, query=EventsQuery,
        summary="The images of prompts, behind the number of an event.", answers={200: ImageList},
    ),
    Route(
        method="GET", path="/images/{event}/{index}", handler=show_image,
        summary="One image of a prompt.", answers={200: " ".join((*IMAGES, "application/octet-stream"))},
    ),
)  # fmt: skip
