"""A client that does nothing but ask again: the least that a client on asyncio takes, here the ideal.

The server waits 50 ms from the moment it is told of a request. Until it is told, and from its answer until somebody
reads it, more time goes by with 64 in flight: that of the server, the kernel and the scheduler, and of no client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import urlsplit


async def ask(base_url: str, bodies: Sequence[bytes], in_flight: int) -> None:
    """POST all bodies, so many at a time, over as many connections; the answers are counted and forgotten."""
    address = urlsplit(base_url)
    assert address.hostname is not None
    assert address.port is not None
    loop = asyncio.get_running_loop()
    waiting = iter(bodies)
    ends = [loop.create_future() for _ in range(in_flight)]
    for end in ends:
        await loop.create_connection(partial(_Asking, waiting, end), address.hostname, address.port)
    await asyncio.gather(*ends)


class _Asking(asyncio.Protocol):
    def __init__(self, waiting: Iterator[bytes], end: asyncio.Future[None]) -> None:
        self._waiting = waiting
        self._end = end
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        head, separator, body = self._unread.partition(b"\r\n\r\n")
        if separator and len(body) == int(head.rpartition(b"Content-Length: ")[2]):
            self._unread = b""
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._end.done():
            self._end.set_exception(exc or ConnectionError("the server hung up"))

    def _ask(self) -> None:
        body = next(self._waiting, None)
        if body is None:
            self._end.set_result(None)
            self._transport.close()
            return
        head = b"POST /google/maps/detail HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)
