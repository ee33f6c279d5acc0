"""What the emulator finds: result rows in the wire format, for one day.

Real: what `places.py` says. Synthetic, the same for the same seed and day: ratings, review counts, the order of
popularity, and every news item and organic result, which say so in their own text. Addresses of pages that do not
exist end in `.example`, a domain reserved for examples (RFC 2606).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from collection_pipeline.sources.emulator.chance import chance, dice
from collection_pipeline.sources.emulator.options import EmulatorOptions
from collection_pipeline.sources.emulator.places import EARTH_KM, Place, Places, words_of

Row = dict[str, Any]
NEWS_AND_ORGANIC_PER_PAGE = 10
_EPOCH = date(2020, 1, 1)
_TOPICS = ("runway works", "a new route", "passenger figures", "the terminal", "ground transport", "winter service")


class Day:
    """The emulator's data as of one day."""

    def __init__(self, places: Places, options: EmulatorOptions) -> None:
        self._places = places
        self._options = options
        self._seed = options.seed
        self._day = options.today()

    def maps_search(self, params: Mapping[str, Any]) -> list[Row]:
        """One page of places: nearest first with coordinates, else by words in name or city and then by popularity."""
        country_code = None if "lat" in params else params["gl"].upper()
        found = [place for place in self._places.matching(params["q"], country_code) if self._is_listed(place)]
        if "lat" in params:
            found = self._nearest(found, params["lat"], params["lng"], params["zoom"])
        else:
            words = set(words_of(params["q"]))
            found.sort(
                key=lambda p: (-len(words & set(words_of(f"{p.name} {p.city}"))), -self._popularity(p), p.feature_id)
            )
        return [self._place_row(place) for place in self._page(found, params["page"], self._options.rows_per_page)]

    def maps_detail(self, feature_id: str) -> Row | None:
        """Everything about one place; None if there is no such place."""
        place = self._places.by_feature_id.get(feature_id)
        if place is None:
            return None
        facts = {
            "IATA code": place.iata,
            "ICAO code": place.icao,
            "City": place.city,
            "Subdivision": place.subdivision,
            "Country": place.country,
            "Country code": place.country_code,
            "Elevation (ft)": f"{place.elevation_ft:g}",
            "Time zone": place.timezone,
        }
        codes = "/".join(code for code in (place.iata, place.icao) if code)
        return self._place_row(place) | {
            "description": f"{place.types[0]} ({codes}) in {place.address}, {place.elevation_ft:g} ft above sea level.",
            "attributes": [{"name": name, "value": value} for name, value in facts.items() if value],
        }

    def search(self, params: Mapping[str, Any]) -> list[Row]:
        """Synthetic organic results, one for each place found."""
        found = self.maps_search({**params, "page": 1})
        rows = []
        for rank, place in enumerate(self._page(found, params["page"], NEWS_AND_ORGANIC_PER_PAGE), start=1):
            host = f"{place['feature_id'].replace(':', '-')}.airports.example"
            rows.append(
                {
                    "rank": rank,
                    "position": rank,
                    "title": f"[Synthetic] {place['name']}",
                    "link": f"https://{host}/",
                    "url": f"https://{host}/",
                    "display_url": host,
                    "snippet": f"Synthetic result of the emulator about {place['name']}, {place['address']}.",
                }
            )
        return rows

    def news(self, params: Mapping[str, Any]) -> list[Row]:
        """Synthetic news, none to twelve items a day and query, newest first."""
        query = " ".join(params["q"].replace('"', " ").split())
        count = dice(self._seed, "news", query, self._day) % 13
        hours = sorted(dice(self._seed, "news", query, self._day, item) % 47 for item in range(count))
        rows = []
        for rank, hours_ago in enumerate(self._page(hours, params["page"], NEWS_AND_ORGANIC_PER_PAGE), start=1):
            number = dice(self._seed, "news", query, self._day, params["page"], rank)
            published_at = datetime.combine(self._day, time(0), UTC) - timedelta(hours=hours_ago)
            rows.append(
                {
                    "rank": rank,
                    "title": f"[Synthetic] {query}: {_TOPICS[number % len(_TOPICS)]}",
                    "link": f"https://news.example/{number:016x}",
                    "source": "Emulator (synthetic)",
                    "time": f"{hours_ago} hours ago",
                    "published_at": published_at.isoformat(),
                    "snippet": "Synthetic news made by the emulator; nothing of this happened.",
                }
            )
        return rows

    def _page(self, rows: list[Any], page: int, size: int) -> list[Any]:
        return rows[(page - 1) * size : page * size] if page <= self._options.last_page else []

    def _is_listed(self, place: Place) -> bool:
        return chance(self._seed, "listed", place.feature_id, self._day) >= self._options.unlisted_share

    def _popularity(self, place: Place) -> float:
        return self._review_count(place) * (1 + 0.2 * chance(self._seed, "popular", place.feature_id, self._day))

    def _review_count(self, place: Place) -> int:
        """From ten to some tens of thousands, more for international airports, growing a little from day to day."""
        size = 10 ** (1 + 2 * chance(self._seed, "reviews", place.feature_id))
        if "International airport" in place.types:
            size *= 30
        return round(size * (1 + 0.0005 * (self._day - _EPOCH).days))

    def _rating(self, place: Place) -> float:
        usual = 3.2 + 1.6 * chance(self._seed, "rating", place.feature_id)
        return round(usual + 0.1 * (chance(self._seed, "rating", place.feature_id, self._day) - 0.5), 1)

    def _nearest(self, found: list[Place], latitude: float, longitude: float, zoom: int) -> list[Place]:
        """Nearest first: those on a map of 1,024 pixels around the point at this zoom, but at least one page."""
        radius_km = 2 * math.pi * EARTH_KM / 2**zoom * 4 / 2
        far = [(place.distance_km(latitude, longitude), place.feature_id, place) for place in found]
        far.sort(key=lambda item: item[:2])
        return [place for n, (km, _, place) in enumerate(far) if km <= radius_km or n < self._options.rows_per_page]

    def _place_row(self, place: Place) -> Row:
        return {
            "name": place.name,
            "title": place.name,
            "feature_id": place.feature_id,
            "place_id": place.place_id,
            "rating": self._rating(place),
            "review_count": self._review_count(place),
            "types": place.types,
            "address": place.address,
            "google_maps_url": (
                f"https://www.google.com/maps/search/?api=1&query={place.latitude:.6f}%2C{place.longitude:.6f}"
            ),
            "latitude": place.latitude,
            "longitude": place.longitude,
        }
