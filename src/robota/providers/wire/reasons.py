"""What services mean by the words of a refusal: a status alone does not tell what to do."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from robota.core.errors import ProviderError


class Reason(Struct, frozen=True):
    """What services say in words alone: a refusal whose status does not tell what to do.

    It is known by words of which one from every group must be there.
    """

    what: str
    fix: str
    groups: tuple[tuple[str, ...], ...]
    """All in lower case."""


NO_CREDIT = Reason(
    "says that the account has no credit left",
    "check the billing page of the service",
    (
        (
            "insufficient_quota",
            "insufficient balance",
            "credit balance",
            "billing_hard_limit",
            "out of credits",
        ),
    ),
)
TOO_LARGE = Reason(
    "finds the request too large",
    "compact the conversation or send smaller files",
    (("image", "payload", "request", "file", "body"), ("exceeds", "too large", "too big", "entity too")),
)
TOO_LONG = Reason(
    "cannot take a conversation this long",
    "compact it or use a model with a larger window",
    (
        (
            "context_length",
            "context_size",
            "context length",
            "context window",
            "prompt is too long",
            "input token count",
        ),
    ),
)
FILTERED = Reason(
    "refused this content by its filter",
    "say it in other words or leave the passage out",
    (
        (
            "content_filter",
            "content filter",
            "content management policy",
            "content_policy",
            "responsibleaipolicyviolation",
            "safety system",
            "usage policy",
            "data_inspection_failed",
            "inappropriate content",
            "content exists risk",
        ),
    ),
)
BAD_IMAGE = Reason(
    "cannot read an image of this conversation",
    "send PNG, JPEG, GIF or WebP, or leave the image out",
    (
        ("image",),
        (
            "unsupported image",
            "invalid image",
            "invalid_image",
            "invalid base64 image",
            "image_parse",
            "image format",
            "valid image",
            "image is not valid",
            "process image",
            "process input image",
            "decode image",
            "load image",
            "media type",
            "media_type",
            "mime type",
        ),
    ),
)
BAD_FILE = Reason(
    "cannot read a file of this conversation",
    "send a type that it takes, such as PDF, or leave the file out",
    (("file",), ("invalid file", "file data", "file type", "unsupported file", "mime type")),
)
_NOT_SUPPORTED = ("not support", "unsupported", "only supported", "found that support", "not enabled")
NO_TOOLS = Reason(
    "cannot use tools with this model",
    "choose a model that can, or run without tools",
    (("tool", "function call"), _NOT_SUPPORTED),
)
NO_VISION = Reason(
    "cannot look at images with this model",
    "choose a model that can, or leave the images out",
    (("image", "vision", "multimodal"), _NOT_SUPPORTED),
)
REASONS = (NO_CREDIT, FILTERED, TOO_LONG, BAD_IMAGE, BAD_FILE, NO_TOOLS, NO_VISION, TOO_LARGE)
"""The first that fits stands."""


def find_reason(said: str, codes: Sequence[str]) -> Reason | None:
    """The reason behind a service's words and its own codes."""
    if any("context" in code for code in codes):
        return TOO_LONG
    text = " ".join((said, *codes)).lower()
    return next(
        (reason for reason in REASONS if all(any(word in text for word in group) for group in reason.groups)),
        None,
    )


# --- fields --------------------------------------------------------------------------------------------

_UNKNOWN = (
    "unknown", "unrecognized", "unrecognised", "unsupported", "not support", "not permitted", "not allowed",
    "extra inputs", "extra_forbidden", "unexpected", "additional propert", "cannot find field",
)  # fmt: skip


def find_rejected(error: ProviderError, fields: Sequence[str]) -> str | None:
    """The one of these fields that a refusal is about, because the service does not know or take it."""
    if error.status not in (400, 422):
        return None
    import re  # noqa: PLC0415 - most requests are not refused

    text = str(error)
    if not any(word in text.lower() for word in _UNKNOWN):
        return None
    found = {field: re.search(rf"(?<![\w-]){field}(?![\w-])", text) for field in fields}
    places = {place.start(): field for field, place in found.items() if place is not None}
    return places[min(places)] if places else None  # what comes later is what to use instead
