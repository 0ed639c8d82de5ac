"""A provider that another robota host runs, with its keys and its network.

The wire between them is in docs/adr/0006-remote-wire.md. The adapter is loaded with the first provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._lazy import lazy_names
from robota.core.errors import ConfigurationError, RobotaError
from robota.core.provider_definition import (
    CredentialRequirement,
    ProbeResult,
    ProviderConfig,
    ProviderDefinition,
    SetupStep,
)
from robota.providers.configuration import read_options, settle
from robota.providers.service import endpoint

if TYPE_CHECKING:
    from robota.providers.remote.provider import RemoteProvider

__all__ = ["RemoteProvider"]
__getattr__, __dir__ = lazy_names(__name__, {"RemoteProvider": "robota.providers.remote.provider"}, globals())
TITLE = "The remote host"
OPTIONS = {"headers": dict, "provider": str}


def create(config: ProviderConfig) -> RemoteProvider:
    from robota.providers.remote.provider import RemoteProvider  # noqa: PLC0415 - see the docstring

    settled = settle(config, ProviderConfig(), TITLE)
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
    """A host lists its providers, or it refuses the question: after a wrong key, and in a form of its own."""
    from robota.providers.remote.failures import describe_host_refusal  # noqa: PLC0415 - see the docstring
    from robota.providers.wire.channel import get_json  # noqa: PLC0415

    try:
        create(config)
        settled, wanted = settle(config, ProviderConfig(), TITLE), config.options["provider"]
    except RobotaError as error:
        return ProbeResult(ok=False, message=str(error))
    try:
        listed = await get_json(
            endpoint(settled.base_url or "", "/chat"),
            {},
            provider=TITLE,
            key=settled.api_key,
            timeout=settled.timeout,
            describe=describe_host_refusal,
        )
    except ConfigurationError:  # a host refused the question, as it should; it is there and knows the key
        listed = {"providers": [wanted]}
    except RobotaError as error:
        return ProbeResult(ok=False, message=str(error))
    names = listed.get("providers") if isinstance(listed, dict) else None
    if not isinstance(names, list):
        return ProbeResult(ok=False, message=f"{TITLE} is not a robota host; check the base URL.")
    if wanted not in names:
        known = ", ".join(map(str, names)) or "none"
        return ProbeResult(ok=False, message=f"{TITLE} has no provider {wanted!r}; it has {known}.")
    asked = f"whether {wanted} has {config.model} shows with the first prompt"
    return ProbeResult(ok=True, message=f"{TITLE} answers; {asked}.")


def define() -> ProviderDefinition:
    return ProviderDefinition(
        type="remote",
        create=create,
        display_name="Remote",
        description="A provider of another robota host; its keys stay there.",
        setup_steps=(
            SetupStep(key="base_url", title="Address of the host", required=True),
            SetupStep(key="api_key", title="Key to the host", required=True, masked=True),
            SetupStep(key="model", title="Model", required=True),
        ),
        credential_requirement=CredentialRequirement(("api_key",)),
        probe=probe,
    )
