"""One HTTP exchange: a POST out, bounded in bytes and time coming back, and what it means if that fails."""

from __future__ import annotations

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


def open_session(timeouts: Timeouts, connections: int, headers: dict[str, str]) -> aiohttp.ClientSession:
    """A session for one stream of requests: kept-alive connections, no cookies, no proxy, certificates verified."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        timeout=aiohttp.ClientTimeout(
            total=timeouts.total_s,
            connect=timeouts.connect_s,  # with the look-up of the name, which `sock_connect` would leave out
            sock_read=timeouts.read_s,
        ),
    )


async def exchange(
    session: aiohttp.ClientSession, url: URL, body: bytes, *, max_body_bytes: int = MAX_BODY_BYTES
) -> Reply:
    """Send one request and read its answer. Raises `SourceError`s only; redirects come back as they are."""
    with _typed_errors(f"{url.host}:{url.port}"):
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
def _typed_errors(server: str) -> Iterator[None]:
    """aiohttp's errors → the contract's. Their own texts are left out: they can quote what the server sent."""
    try:
        yield
    except SourceError:
        raise
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError):
        raise TerminalSourceError("the server's certificate was not accepted; nothing was sent") from None
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise TransientSourceError(
            f"no connection to the server {server} ({_reason(error)}); nothing was sent"
        ) from None
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
