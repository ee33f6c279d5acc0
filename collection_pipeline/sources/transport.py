"""One HTTP exchange: a POST out, bounded in bytes and time coming back, and what it means if that fails."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from collection_pipeline.sources.contract import (
    MalformedResponseError,
    SourceError,
    TerminalSourceError,
    TransientSourceError,
)

MAX_BODY_BYTES = 4 * 2**20
"""Longest answer that is read, after decompression. Measured pages of twenty places stay under 100 KB."""


class SourceConfigurationError(ValueError):
    """The source cannot be used as configured. The text never holds the API key."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds until a connection must stand, between two pieces of an answer, and for the whole exchange.

    The vendor's clients give up after 30 s; slower endpoints are known to need up to 120 s.
    """

    connect_s: float = 10.0
    read_s: float = 60.0
    total_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    http_status: int
    retry_after: str | None
    raw: bytes


def checked_base_url(base_url: str) -> URL:
    """The base URL, if a key may be sent there: https, or plain http to this very machine.

    Raises `SourceConfigurationError`.
    """
    try:
        url = URL(base_url.strip().rstrip("/"))
        host, _ = url.host, url.port
    except ValueError:
        raise SourceConfigurationError(
            "the base URL of the source is not a URL; expected https://host[:port][/path]"
        ) from None
    if url.scheme not in ("http", "https") or not host:
        raise SourceConfigurationError("the base URL of the source must start with https:// (or http:// on loopback)")
    if url.user or url.password or url.query_string or url.fragment:
        raise SourceConfigurationError("the base URL of the source must have no user name, password, query or fragment")
    if url.scheme == "http" and not _is_loopback(host):
        raise SourceConfigurationError(
            f"plain http to {host} would show the API key to the network; use https:// (http:// only on loopback)"
        )
    return url


def checked_key(api_key: str) -> str:
    """The key, if it can be sent as an HTTP header. Raises `SourceConfigurationError`."""
    key = api_key.strip()
    if not key:
        raise SourceConfigurationError("the API key of the source is empty")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SourceConfigurationError("the API key of the source holds characters that no HTTP header can carry")
    return key


def open_session(timeouts: Timeouts, connections: int, headers: dict[str, str]) -> aiohttp.ClientSession:
    """A session for one stream of requests: kept-alive connections, no cookies, no proxy, certificates verified."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        timeout=aiohttp.ClientTimeout(
            total=timeouts.total_s,
            connect=timeouts.connect_s,
            sock_connect=timeouts.connect_s,
            sock_read=timeouts.read_s,
        ),
    )


async def exchange(
    session: aiohttp.ClientSession, url: URL, body: bytes, *, max_body_bytes: int = MAX_BODY_BYTES
) -> Reply:
    """Send one request and read its answer. Raises `SourceError`s only; redirects come back as they are."""
    with _typed_errors():
        async with session.post(url, data=body, allow_redirects=False) as response:
            pieces: list[bytes] = []
            size = 0
            while piece := await response.content.readany():
                size += len(piece)
                if size > max_body_bytes:
                    response.close()
                    raise MalformedResponseError(f"malformed answer: the body is longer than {max_body_bytes} bytes")
                pieces.append(piece)
            return Reply(response.status, response.headers.get("Retry-After"), b"".join(pieces))


@contextmanager
def _typed_errors() -> Iterator[None]:
    """aiohttp's errors → the contract's. Their own texts are left out: they can quote what the server sent."""
    try:
        yield
    except SourceError:
        raise
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError):
        raise TerminalSourceError("the server's certificate was not accepted; nothing was sent") from None
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise TransientSourceError(f"no connection to the server ({_reason(error)}); nothing was sent") from None
    except TimeoutError:
        raise TransientSourceError(
            "the answer did not come in time; it may have been charged", possibly_billed=True
        ) from None
    except aiohttp.ClientResponseError:
        raise MalformedResponseError("malformed answer: it is not HTTP") from None
    except aiohttp.ClientPayloadError as error:
        if isinstance(error.__cause__, ContentEncodingError):
            raise MalformedResponseError("malformed answer: its compression is broken") from None
        raise TransientSourceError("the answer broke off; it may have been charged", possibly_billed=True) from None
    except (aiohttp.ClientError, OSError):
        raise TransientSourceError(
            "the connection was cut; the request may have been charged", possibly_billed=True
        ) from None


def _reason(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return getattr(cause, "strerror", None) or type(cause).__name__


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
