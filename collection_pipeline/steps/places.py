"""What a place is on the wire: one object in `places` of a search, or `place` of a detail page.

Field names from the vendor's documentation and public clients; every field may be missing or of any type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

ALIASES: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "title"),
    "feature_id": ("feature_id",),
    "place_id": ("place_id",),
    "types": ("types",),
    "rating": ("rating",),
    "review_count": ("review_count",),
    "address": ("address",),
    "phone": ("phone_international", "phone"),
    "website": ("website", "url"),
    "google_maps_url": ("google_maps_url",),
    "latitude": ("latitude",),
    "longitude": ("longitude",),
    "description": ("description", "short_description", "snippet"),
    "hours": ("hours",),
    "open_status": ("open_status",),
    "attributes": ("attributes",),
}
"""Column → the fields it is read from, best first."""

_FEATURE_ID = re.compile(r"[!-~]{1,128}")

_PLAIN = {column: names[0] for column, names in ALIASES.items() if len(names) == 1}
_SPELT_VARIOUSLY = {column: names for column, names in ALIASES.items() if len(names) > 1}
_READ = frozenset(name for names in ALIASES.values() for name in names)


def read_place(place: Mapping[str, Any]) -> dict[str, Any]:
    """The place's fields under their column names, still of whatever type they came in."""
    row = {column: place.get(name) for column, name in _PLAIN.items()}
    row |= {column: _first(place, names) for column, names in _SPELT_VARIOUSLY.items()}
    row["category"] = _category(row["types"])
    return row


def other_fields(place: Mapping[str, Any]) -> dict[str, Any]:
    """What the answer says beyond the columns."""
    return {name: value for name, value in place.items() if name not in _READ}


def is_feature_id(value: object) -> bool:
    """Whether the value can be an id to ask details for: short printable ASCII without spaces.

    The usual shape is two hexadecimal halves, 0x…:0x…; no document promises it, so other shapes pass.
    """
    return isinstance(value, str) and _FEATURE_ID.fullmatch(value) is not None


def _first(place: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first spelling with text in it; without one the first with anything, so that a wrong type is counted."""
    given = [place[name] for name in names if place.get(name) is not None]
    return next((value for value in given if isinstance(value, str) and value.strip()), given[0] if given else None)


def _category(types: Any) -> str | None:
    if isinstance(types, str):
        return types
    if isinstance(types, list):
        return next((item for item in types if isinstance(item, str) and item.strip()), None)
    return None
