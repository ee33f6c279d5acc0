"""Answers as a source gives them, composed from the real airports of `airportsdata`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import airportsdata

from collection_pipeline.sources.contract import Answer, ApiRequest

RECEIVED_AT = datetime(2026, 11, 28, 6, 0, 1, 250_000, tzinfo=UTC)


@cache
def airports() -> list[airportsdata.Airport]:
    """The airports with an IATA code, in order of it."""
    return sorted(airportsdata.load("IATA").values(), key=lambda airport: str(airport["iata"]))


def place(index: int, **fields: Any) -> dict[str, Any]:
    """The airport of that index as a place on the wire; `fields` replace or add."""
    airport = airports()[index]
    return {
        "name": airport["name"],
        "title": airport["name"],
        "feature_id": feature_id(index),
        "place_id": f"ChIJ{index:08d}",
        "rating": round(3 + index % 20 / 10, 1),
        "review_count": 10 + index * 7 % 5000,
        "types": ["Airport", str(airport["tz"])],
        "address": f"{airport['city']}, {airport['subd']}, {airport['country']}",
        "latitude": airport["lat"],
        "longitude": airport["lon"],
        **fields,
    }


def feature_id(index: int) -> str:
    return f"0x{index + 16:x}:0x{index + 4096:x}"


def answer(request: ApiRequest, payload: dict[str, Any], request_id: str = "") -> Answer:
    """A successful answer to `request`."""
    body = json.dumps({"status": 0, "search_type": request.endpoint, **payload}).encode()
    return Answer(request, request_id or f"req-{request.fingerprint[:12]}", RECEIVED_AT, body)


def search_answer(request: ApiRequest, places: Sequence[Any] | None) -> Answer:
    """A page of a map search; None leaves `places` out, as the source does when nothing was found."""
    return answer(request, {} if places is None else {"places": list(places)})


def detail_answers(requests: Sequence[ApiRequest], **fields: Any) -> list[Answer]:
    """The detail page of every request, from the airport that its feature_id names."""
    return [answer(request, {"place": place(_index(request), **fields)}) for request in requests]


def _index(request: ApiRequest) -> int:
    return int(str(request.params["feature_id"]).partition(":")[0], 16) - 16
