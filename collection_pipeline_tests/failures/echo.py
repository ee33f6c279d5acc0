"""A source that shows every key it is given, in every way in which an answer can go wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any

PLACES = 40
"""Found by a search; the details of the first six go wrong, each in another way."""


@contextmanager
def echoing() -> Iterator[str]:
    """Serve on loopback; yields the base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    numbers = count()

    def do_POST(self) -> None:
        key = self.headers["X-API-Key"]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        envelope: dict[str, Any] = {"status": 0, "request_id": f"{key}-{next(self.numbers)}", "credits_charged": 2}
        if self.path.endswith("/search"):
            places = [{"name": f"{key} {number}", "feature_id": f"0x1:0x{number:x}"} for number in range(PLACES)]
            self._say({**envelope, "places": places, "query": asked["q"]})
            return
        match int(str(asked.get("feature_id", "0x1:0x7")).rpartition("x")[2], 16):
            case 0:
                self._say(f"<html>who is {key}?</html>".encode())
            case 1:
                self._say({**envelope, "status": 1000, "error": f"bad key {key}"})
            case 2:
                self._say({**envelope, "status": 1999, "error": f"something new about {key}"})
            case 3:
                self._say({**envelope, "place": key})
            case 4:
                self._say({}, 302, Location=f"https://evil.example/?key={key}")
            case 5:
                self._say({**envelope, "status": 1004, "error": f"{key} found nothing"})
            case _:
                place = {
                    "name": key,
                    "address": f"key={key}",
                    "website": f"https://example.com/{key}",
                    "more": {key: key},
                }
                self._say({**envelope, key: key, "place": {"feature_id": asked.get("feature_id"), **place}})

    def _say(self, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
