"""The emulator's places: the airports of the `airportsdata` package that have an IATA code, about 7,900, and real.

Name, city, subdivision, country, coordinates, elevation, time zone and codes are real. `feature_id` and `place_id` are
the emulator's own (consistent with each other, but unknown to Google Maps). What `airportsdata` does not know, such as
telephone numbers and opening hours, is absent.
"""

from __future__ import annotations

import base64
import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import airportsdata

from collection_pipeline.sources.emulator.chance import dice

EARTH_KM = 6371.0
_WORD = re.compile(r"\w+")
_UNDECOMPOSED = str.maketrans({"ð": "d", "þ": "th", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})
_GENERIC = {"airport", "airports", "airfield", "airfields", "aerodrome", "aerodromes"}
_FILLERS = {"a", "an", "and", "around", "at", "by", "for", "in", "near", "nearby", "of", "the", "to"}
_MORE_COUNTRY_WORDS = {
    "US": "usa america",
    "GB": "united kingdom great england scotland wales",
    "CZ": "czechia",
    "TR": "turkiye",
}


@dataclass(frozen=True, slots=True)
class Place:
    """One airport. `elevation_ft` is feet above mean sea level; coordinates are decimal degrees (WGS 84)."""

    feature_id: str
    place_id: str
    name: str
    city: str
    subdivision: str
    country_code: str
    country: str
    latitude: float
    longitude: float
    elevation_ft: float
    timezone: str
    iata: str
    icao: str

    @property
    def address(self) -> str:
        """One line, from the smallest to the largest, without repetitions."""
        return ", ".join(dict.fromkeys(part for part in (self.city, self.subdivision, self.country) if part))

    @property
    def types(self) -> list[str]:
        """What the name says it is."""
        name = self.name.lower()
        if "heliport" in name:
            return ["Heliport"]
        if "seaplane" in name:
            return ["Seaplane base"]
        return ["International airport", "Airport"] if "international" in name else ["Airport"]

    def distance_km(self, latitude: float, longitude: float) -> float:
        """Great-circle distance."""
        here, there = math.radians(self.latitude), math.radians(latitude)
        step = math.radians(longitude - self.longitude)
        haversine = math.sin((there - here) / 2) ** 2 + math.cos(here) * math.cos(there) * math.sin(step / 2) ** 2
        return 2 * EARTH_KM * math.asin(min(1.0, math.sqrt(haversine)))


def place_id_of(feature_id: str) -> str:
    """The `ChIJ…` form of a feature_id: url-safe base64 of a small protocol buffer with both halves, little-endian."""
    first, second = (int(half, 16).to_bytes(8, "little") for half in feature_id.split(":"))
    return base64.urlsafe_b64encode(b"\x0a\x12\x09" + first + b"\x11" + second).decode().rstrip("=")


def words_of(text: str) -> list[str]:
    """The words of a text, lower-case and without accents."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_UNDECOMPOSED))
    return _WORD.findall("".join(c for c in plain if not unicodedata.combining(c)))


class Places:
    """All places, found by feature_id, by words or by country."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.by_feature_id = {place.feature_id: place for place in places}

    @cached_property
    def _by_word(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for place in self.by_feature_id.values():
            text = f"{place.name} {place.city} {place.subdivision} {place.country} {place.iata} {place.icao}"
            for word in words_of(f"{text} {_MORE_COUNTRY_WORDS.get(place.country_code, '')}"):
                found.setdefault(word, set()).add(place.feature_id)
        return found

    def matching(self, query: str, country_code: str | None) -> list[Place]:
        """The places that have every word of the query.

        A query that names nothing but airports means those of the country, or all of them without a country.
        """
        words = [word for word in words_of(query) if word not in _FILLERS | _GENERIC]
        if not words:
            everywhere = self.by_feature_id.values()
            return [place for place in everywhere if country_code in (None, place.country_code)]
        found = set.intersection(*(self._by_word.get(word, set()) for word in words))
        return [self.by_feature_id[feature_id] for feature_id in found]


@cache
def all_places() -> Places:
    """The airports, read once, in about 0.2 s."""
    countries = _country_names()
    return Places(
        Place(
            feature_id=(
                feature_id := f"{dice('feature', airport['iata'], 1):#x}:{dice('feature', airport['iata'], 2):#x}"
            ),
            place_id=place_id_of(feature_id),
            name=airport["name"],
            city=airport["city"],
            subdivision=airport["subd"],
            country_code=airport["country"],
            country=countries.get(airport["country"], airport["country"]),
            latitude=airport["lat"],
            longitude=airport["lon"],
            elevation_ft=airport["elevation"],
            timezone=airport["tz"],
            iata=airport["iata"],
            icao=airport["icao"],
        )
        for airport in airportsdata.load("IATA").values()
    )


def _country_names() -> dict[str, str]:
    """English names by ISO 3166 code, as the time zone database spells them."""
    table = files("tzdata.zoneinfo").joinpath("iso3166.tab").read_text(encoding="utf-8")
    rows = (line.split("\t", 1) for line in table.splitlines() if line and not line.startswith("#"))
    return dict(rows) | {"XK": "Kosovo"}
