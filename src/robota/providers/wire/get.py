"""Asks a service one question by GET and reads the JSON it answers with: lists of models, checks of a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from robota.core.errors import RobotaError
from robota.core.messages import Json
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.errors import Refusal, describe_refusal

PATIENCE = 20.0
"""Seconds for the whole answer."""


class _Question(HttpChannel):
    """A channel whose refusals mean what its caller says."""

    explain: Callable[[Refusal, str, Sequence[str]], RobotaError]

    def describe(self, refusal: Refusal) -> RobotaError:
        return self.explain(refusal, self.provider, self.secrets)


async def get_json(
    url: str,
    headers: Mapping[str, str],
    *,
    provider: str,
    secrets: Sequence[str] = (),
    timeout: float | None = None,
    describe: Callable[[Refusal, str, Sequence[str]], RobotaError] = describe_refusal,
) -> Json:
    """The JSON at that address; a refusal, a failure or anything that is no JSON is raised."""
    asked = {"accept": "application/json", "accept-encoding": "gzip", **headers}
    channel = _Question(url, asked, provider=provider, secrets=secrets)
    channel.explain = describe
    try:
        return await channel.ask("GET", timeout=timeout or PATIENCE)
    finally:
        await channel.aclose()
