"""A client of the emulator that knows nothing but HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from http.client import HTTPConnection
from typing import Any

from collection_pipeline.sources.emulator import EmulatorOptions, embedded, parse_faults

DAY = date(2026, 11, 29)


@dataclass(frozen=True, slots=True)
class Said:
    """One answer."""

    http_status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Client:
    """Talks to one emulator."""

    base_url: str
    key: str

    def request(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Said:
        connection = HTTPConnection(self.base_url.removeprefix("http://"), timeout=20)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Said(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def post(self, path: str, **params: Any) -> Any:
        """The JSON of an answer to a POST with the key."""
        return self.request("POST", path, json.dumps(params).encode(), {"X-API-Key": self.key}).json()

    def search(self, q: str, **params: Any) -> list[dict[str, Any]]:
        """One page of places."""
        places: list[dict[str, Any]] = self.post("/google/maps/search", q=q, **params).get("places", [])
        return places

    def detail(self, feature_id: str) -> Any:
        return self.post("/google/maps/detail", feature_id=feature_id)

    def state(self) -> Any:
        return self.request("GET", "/emulator/state").json()


@contextmanager
def emulator(faults: str = "", **options: Any) -> Iterator[Client]:
    """An emulator of a fixed day on loopback."""
    with embedded(EmulatorOptions(**{"day": DAY, "faults": parse_faults(faults), **options})) as running:
        yield Client(running.base_url, running.api_key)
