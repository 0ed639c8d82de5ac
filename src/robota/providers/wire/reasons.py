"""What services mean by the words of a refusal: a status alone does not tell what to do."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


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
REASONS = (NO_CREDIT, TOO_LONG, NO_TOOLS, NO_VISION, TOO_LARGE)
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
