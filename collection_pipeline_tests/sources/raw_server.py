"""A server that says exactly the bytes it is told to, on loopback, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from collection_pipeline.sources.contract import ApiRequest, Exchange
from collection_pipeline.sources.pacing import Backoff
from collection_pipeline.sources.serpbase import SerpBaseSource

KEY = "test-key-0123456789"
DETAIL = ApiRequest("maps_detail", {"feature_id": "0x1a:0x2b", "hl": "en", "gl": "us"})
ONCE = Backoff(attempts=1)


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class RawServer:
    """Where it listens, and what it was asked."""

    base_url: str
    received: list[Received] = field(default_factory=list)


def http(body: bytes | Mapping[str, Any], status: int = 200, **headers: str) -> bytes:
    """The bytes of a well-formed HTTP answer. Underscores in header names stand for hyphens."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def success(**fields: Any) -> dict[str, Any]:
    """The body of a success of maps_detail."""
    envelope = {"status": 0, "request_id": "r-1", "elapsed_ms": 5, "credits_charged": 2, "search_type": "maps_detail"}
    return {**envelope, "place": {"name": "Jade Leaf"}, **fields}


def failure(status: int, error: str = "as told", **fields: Any) -> dict[str, Any]:
    """The body of a business error."""
    return {"status": status, "error": error, "request_id": "r-2", "credits_charged": 0, **fields}


def saying(*answers: bytes) -> Answer:
    """Give these answers in turn, the last one for ever; b"" hangs up without a word."""
    left = list(answers)

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        said = left.pop(0) if len(left) > 1 else left[0]
        if said:
            writer.write(said)
            await writer.drain()
        else:
            writer.close()

    return answer


@asynccontextmanager
async def raw_server(answer: Answer, **options: Any) -> AsyncIterator[RawServer]:
    """Serve on a free loopback port; `options` go to asyncio's server (`ssl`)."""
    connections: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while not writer.is_closing():
                request = await _read(reader)
                server.received.append(request)
                await answer(request, writer)
        writer.close()
        connections.discard(task)

    listener = await asyncio.start_server(talk, "127.0.0.1", 0, **options)
    scheme = "https" if options.get("ssl") else "http"
    server = RawServer(f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    try:
        yield server
    finally:
        listener.close()
        for connection in list(connections):
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    request_line, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, path, _ = request_line.split(" ")
    return Received(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


async def allow(_: ApiRequest) -> None:
    """Admit everything."""


async def collect(source: SerpBaseSource, requests: Iterable[ApiRequest] = (DETAIL,)) -> list[Exchange]:
    """All attempts, in the order they ended."""
    return [attempt async for attempt in source.stream(requests, admit=allow)]


def details(count: int) -> list[ApiRequest]:
    """So many different requests."""
    return [ApiRequest("maps_detail", {"feature_id": f"0x1:{number:#x}"}) for number in range(1, count + 1)]
