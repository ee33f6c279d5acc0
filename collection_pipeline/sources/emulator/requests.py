"""Which request bodies the emulator takes. That it refuses the others, always with 1000, is our own choice."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from collection_pipeline.sources.contract import Endpoint

_FEATURE_ID = re.compile(r"0x[0-9a-f]{1,16}:0x[0-9a-f]{1,16}", re.IGNORECASE)
_BOUNDS: Mapping[str, tuple[float, float]] = {"lat": (-90, 90), "lng": (-180, 180), "zoom": (1, 21)}


class InvalidRequestError(ValueError):
    """What is wrong with a request body."""


def read_params(endpoint: Endpoint, raw: bytes) -> dict[str, Any]:
    """The known parameters of a body, with defaults; unknown ones are ignored. Raises `InvalidRequestError`."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise InvalidRequestError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise InvalidRequestError("the body is not a JSON object")
    params: dict[str, Any] = {"hl": _text(body, "hl", "en"), "gl": _text(body, "gl", "us").lower()}
    if endpoint == "maps_detail":
        feature_id = _text(body, "feature_id")
        if not _FEATURE_ID.fullmatch(feature_id):
            raise InvalidRequestError("feature_id is not of the form 0x…:0x…")
        return params | {"feature_id": feature_id.lower()}
    params |= {"q": _text(body, "q"), "page": _page(body)}
    return params | _point(body) if endpoint == "maps_search" else params


def _text(body: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequestError(f"{name} must be a text that is not empty")
    return " ".join(value.split())


def _page(body: Mapping[str, Any]) -> int:
    page = body.get("page", 1)
    if type(page) is not int or page < 1:
        raise InvalidRequestError("page must be a whole number from 1")
    return page


def _point(body: Mapping[str, Any]) -> dict[str, float]:
    if "lat" not in body and "lng" not in body:
        return {}
    point = {"lat": body.get("lat"), "lng": body.get("lng"), "zoom": body.get("zoom", 14)}
    for name, value in point.items():
        lowest, highest = _BOUNDS[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
            raise InvalidRequestError(f"{name} must be a number from {lowest} to {highest}; lat and lng come together")
    if point["zoom"] != int(point["zoom"]):
        raise InvalidRequestError("zoom must be a whole number")
    return point | {"zoom": int(point["zoom"])}
