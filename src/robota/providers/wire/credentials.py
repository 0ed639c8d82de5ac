"""Where a key is wanted, and where none may go: known before anything is sent."""

from __future__ import annotations

import os

from robota.core.errors import AuthenticationError, ConfigurationError
from robota.http.url import Url

KEY_VARIABLES: dict[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "dashscope-us.aliyuncs.com": "DASHSCOPE_API_KEY",
    "cn-hongkong.dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Hosts that answer nobody without a key, and the variable that usually has it."""
INSECURE_HOSTS = "ROBOTA_INSECURE_HOSTS"
"""The variable that names hosts, with commas, to which a key may go without encryption."""
_NEAR = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".test", ".example", ".invalid")
"""Ends of names that lead nowhere in the public net."""


def require_key(host: str, provider: str) -> None:
    """Refuse a request that has no key and would be refused for it."""
    if variable := KEY_VARIABLES.get(host):
        raise AuthenticationError(
            f"{provider} has no key for {host}, so nothing was sent: set {variable} or pass api_key.",
            provider=provider,
        )


def refuse_open_road(url: Url, provider: str) -> None:
    """Refuse to send a key where everybody on the way can read it."""
    if url.scheme != "http" or is_near(url.host):
        return
    said = os.environ.get(INSECURE_HOSTS, "").lower().split(",")
    if url.host not in map(str.strip, said):
        raise ConfigurationError(
            f"The key of provider {provider!r} would go to {url.host} without encryption: use https://, or "
            f"name the host in {INSECURE_HOSTS} if this is meant."
        )


def is_near(host: str) -> bool:
    """Whether a host is this machine or one of the same network, by its name or address."""
    if ("." not in host and ":" not in host) or host.endswith(_NEAR):
        return True
    from robota.http.address import describe_special  # noqa: PLC0415 - only for plain HTTP with a key

    try:
        return describe_special(host.strip("[]")) is not None
    except ValueError:
        return False  # a name of the public kind
