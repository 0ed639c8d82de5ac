"""Which proxy a request goes through: what the environment says, or the system where it has settings.

This machine itself is never reached by way of a proxy, whatever `NO_PROXY` says: a model server on loopback
would be looked for on the proxy's machine.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterable

from robota.http.url import Url

_VARIABLES = {
    scheme: (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    for scheme in ("http", "https")
}


def find_proxy(url: Url) -> str | None:
    """The address of the proxy for this URL now; `None` if it is reached directly."""
    if sys.platform not in ("darwin", "win32") and not any(map(os.environ.get, _VARIABLES[url.scheme])):
        return None
    if is_this_machine(url):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 15 ms, for those behind a proxy

    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{url.host}:{url.port}"):
        return None
    if url.is_address and _is_within(url.host, proxies.get("no", "").split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_this_machine(url: Url) -> bool:
    """Whether the host is on the loopback interface, as far as its name tells."""
    if url.is_address:
        return ipaddress.ip_address(url.host).is_loopback
    return url.host == "localhost" or url.host.endswith(".localhost")


def shown(proxy: str) -> str:
    """The address of a proxy without what it is opened with."""
    scheme, _, place = proxy.partition("://")
    return f"{scheme}://{place.rpartition('@')[2].rstrip('/')}"


def _is_within(host: str, networks: Iterable[str]) -> bool:
    """Whether one of the networks that stand among the exceptions has this address."""
    address = ipaddress.ip_address(host)
    for text in networks:
        try:
            network = ipaddress.ip_network(text.strip(), strict=False)
        except ValueError:  # a name
            continue
        if address.version == network.version and address in network:
            return True
    return False
