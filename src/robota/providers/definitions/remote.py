"""Remote: a provider that another robota host runs, with its keys and its network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, RobotaError
from robota.core.provider import Provider
from robota.core.provider_definition import (
    CredentialRequirement,
    ProbeResult,
    ProviderConfig,
    ProviderDefinition,
    SetupStep,
)
from robota.providers.definitions.configuration import read_options, settle

if TYPE_CHECKING:
    from robota.providers.wire.errors import Refusal

TITLE = "The remote host"
OPTIONS = {"headers": dict, "provider": str}
DEFAULTS = ProviderConfig()


def create(config: ProviderConfig) -> Provider:
    from robota.providers.remote import RemoteProvider  # noqa: PLC0415 - definitions load no adapter

    settled = settle(config, DEFAULTS, TITLE)
    options = read_options(settled, TITLE, OPTIONS)
    provider = options.pop("provider", "")
    if not provider:
        raise ConfigurationError(f"{TITLE} needs the option 'provider': the name of a provider it runs.")
    if settled.timeout is not None:
        options["timeout"] = settled.timeout
    return RemoteProvider(
        settled.base_url or "", settled.api_key or "", provider, settled.model or "", **options
    )


async def probe(config: ProviderConfig) -> ProbeResult:
    """A host lists nothing; but it refuses a wrong key first, and its refusals have a form of their own."""
    from robota.providers.wire.channel import endpoint  # noqa: PLC0415 - definitions load no adapter
    from robota.providers.wire.get import get_json  # noqa: PLC0415

    try:
        create(config)
        settled = settle(config, DEFAULTS, TITLE)
        key = settled.api_key or ""
        await get_json(
            endpoint(settled.base_url or "", "/chat"),
            {"authorization": f"Bearer {key}"},
            provider=TITLE,
            secrets=(key,),
            timeout=settled.timeout,
            describe=_describe,
        )
    except HostSpoke:
        asked = f"whether {config.options['provider']} has {config.model} shows with the first prompt"
        return ProbeResult(ok=True, message=f"{TITLE} answers; {asked}.")
    except RobotaError as error:
        return ProbeResult(ok=False, message=str(error))
    return ProbeResult(ok=False, message=f"{TITLE} is no robota host; check the base URL.")


class HostSpoke(ConfigurationError):
    """A robota host refused the question, as it should; it is there and knows the key."""


def _describe(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    from robota.core.jsontext import decode  # noqa: PLC0415 - definitions load no adapter
    from robota.providers.remote.failures import KNOWN_CODES, read_error  # noqa: PLC0415
    from robota.providers.wire.errors import describe_refusal  # noqa: PLC0415

    try:
        answer = decode(refusal.body)
        error = read_error(answer["error"], secrets) if answer["error"]["code"] in KNOWN_CODES else None
    except (ValueError, LookupError, TypeError):
        error = None
    if isinstance(error, ConfigurationError):
        return HostSpoke(str(error))
    return error or describe_refusal(refusal, provider, secrets)


DEFINITION = ProviderDefinition(
    type="remote",
    create=create,
    display_name="Remote",
    description="A provider of another robota host; its keys stay there.",
    defaults=DEFAULTS,
    setup_steps=(
        SetupStep(key="base_url", title="Address of the host", required=True),
        SetupStep(key="api_key", title="Key to the host", required=True, masked=True),
        SetupStep(key="model", title="Model", required=True),
    ),
    credential_requirement=CredentialRequirement(("api_key",)),
    probe=probe,
)
