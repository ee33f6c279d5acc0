"""How a source may be configured. Light, so that the settings judge an address by the rule that the client keeps."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


class SourceConfigurationError(ValueError):
    """The source cannot be used as configured. The text never holds the API key."""


def checked_base_url(base_url: str) -> str:
    """The base URL without its last slash, if a key may be sent there: https, or plain http to this very machine.

    Raises `SourceConfigurationError`.
    """
    base_url = base_url.strip()
    try:
        url = urlsplit(base_url)
        host, _ = url.hostname, url.port
    except ValueError:
        raise SourceConfigurationError("not an http or https address") from None
    if not base_url.isprintable() or " " in base_url or url.scheme not in ("http", "https") or not host:
        raise SourceConfigurationError("not an http or https address")
    if url.username is not None or url.password is not None or url.query or url.fragment:
        raise SourceConfigurationError(
            "only scheme, host, port and path belong here; the key goes into SERPBASE_API_KEY"
        )
    if url.scheme == "http" and not _is_loopback(host):
        raise SourceConfigurationError(
            "plain http would send the key in the clear and is allowed on this machine's loopback only"
        )
    return url.geturl().rstrip("/")


def checked_key(api_key: str) -> str:
    """The key, if it can be sent as an HTTP header. Raises `SourceConfigurationError`."""
    key = api_key.strip()
    if not key:
        raise SourceConfigurationError("the API key of the source is empty")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SourceConfigurationError("the API key of the source holds characters that no HTTP header can carry")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
