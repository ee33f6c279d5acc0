"""A server that answers every POST with one detail page after a fixed time, in a process of its own.

It does as little as HTTP allows, so that it is never the bottleneck: the answer is made once, and only the feature_id
and a request_id are filled in. Timers fire late, by half a millisecond here: the server watches by how much and sets
them as much earlier, so that the mean is what was asked for. When it ends it says what the mean was.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

from benchmarks.measuring import python

_FEATURE_ID = re.compile(rb'"feature_id": ?"([^"]+)"')
_LENGTH = re.compile(rb"content-length: ?(\d+)", re.IGNORECASE)

_PLACE = {
    "name": "Jade Leaf Tea House",
    "place_id": "ChIJ7csDcMKxe0gR87JEKuY9OZs",
    "rating": 4.6,
    "review_count": 128,
    "types": ["Tea house", "Cafe"],
    "address": "1 Example Street, Exampleton EX1 1EX",
    "phone_international": "+44 20 7946 0000",
    "website": "https://jade.example/",
    "google_maps_url": "https://www.google.com/maps?ftid=0x0:0x0",
    "latitude": 51.5,
    "longitude": -0.12,
    "description": "Tea by the pot, cake by the slice.",
    "hours": dict.fromkeys(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"), "09:00-17:00"),
    "open_status": {"text": "Open until 17:00"},
    "attributes": [{"name": f"attribute {number}", "value": "yes"} for number in range(12)],
}
_ENVELOPE = {"status": 0, "elapsed_ms": 50, "credits_charged": 2, "search_type": "maps_detail"}
_ANSWER = json.dumps({**_ENVELOPE, "request_id": "%(request)s", "place": {**_PLACE, "feature_id": "%(feature)s"}})
_BEFORE, _BETWEEN, _AFTER = (part.encode() for part in re.split(r"%\(\w+\)s", _ANSWER))


class _Latency:
    """Answers after `wanted_s` in the mean, measured from the whole request to the writing of the answer."""

    def __init__(self, wanted_s: float) -> None:
        self._wanted_s = wanted_s
        self._ahead_s = 0.0
        self._answers = 0
        self._taken_s = 0.0

    def then(self, answer: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        set_for = asked + self._wanted_s - self._ahead_s

        def due() -> None:
            now = loop.time()
            self._answers += 1
            self._taken_s += now - asked
            self._ahead_s += (now - set_for - self._ahead_s) / 100  # how late timers are, whatever was taken off
            answer()

        loop.call_at(set_for, due)

    @property
    def mean_s(self) -> float:
        return self._taken_s / max(self._answers, 1)


class _Connection(asyncio.Protocol):
    numbers = count()

    def __init__(self, latency: _Latency) -> None:
        self._latency = latency
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            head = self._unread[:end]
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._unread) < whole:
                return
            body, self._unread = self._unread[end + 4 : whole], self._unread[whole:]
            self._latency.then(partial(self._answer, body))

    def _answer(self, asked: bytes) -> None:
        feature_id = _FEATURE_ID.search(asked)
        request_id = b"bench-%d" % next(self.numbers)
        body = b"".join((_BEFORE, request_id, _BETWEEN, feature_id[1] if feature_id else b"", _AFTER))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def _serve(latency_s: float) -> None:
    loop = asyncio.get_running_loop()
    latency = _Latency(latency_s)
    server = await loop.create_server(lambda: _Connection(latency), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it goes
    print(latency.mean_s, flush=True)


@dataclass(slots=True)
class Served:
    """Where the server is, and, once it has ended, what an answer took it in the mean."""

    base_url: str
    mean_s: float | None = None


@contextmanager
def serving(latency_s: float) -> Iterator[Served]:
    """Run the server in its own process."""
    command = python("-m", __name__, str(latency_s))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        served = Served(f"http://127.0.0.1:{int(process.stdout.readline())}")
        try:
            yield served
        finally:
            process.stdin.close()
        served.mean_s = float(process.stdout.read())


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
