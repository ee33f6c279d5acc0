"""The geometry of the report's charts: plain numbers, drawn as SVG by the templates."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

import pandas as pd

MAP_WIDTH, MAP_HEIGHT = 720, 330

WORLD = (-180.0, -58.0, 180.0, 80.0)
"""West, south, east, north of the whole map, in degrees: Antarctica has few places to collect."""

_CELL_PX = 6
_WORLD_CELL = 2
"""Degrees per character of templates/world.txt, which marks the cells with an airport in `airportsdata`."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label, its value, and its length as a share of the longest."""

    label: str
    value: int
    share: float


@dataclass(frozen=True, slots=True)
class Map:
    """Places in view coordinates (pixels): dots are (x, y, radius), background the path of the grey dots."""

    width: int
    height: int
    dots: Sequence[tuple[float, float, float]]
    background: str
    background_dot: float


def bars(values: Iterable[tuple[str, int]]) -> list[Bar]:
    """Bars in the order given."""
    counted = list(values)
    longest = max((value for _, value in counted), default=0)
    return [Bar(label, value, value / longest if longest else 0.0) for label, value in counted]


def by_query(rows: pd.DataFrame, limit: int = 12) -> list[tuple[str, int]]:
    """How many places each query found, the most first; a place counts for every query that found it."""
    counts = Counter(item["query"] for queries in rows["queries"] for item in json.loads(queries))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]


def by_category(rows: pd.DataFrame, no_category: str, other: str, limit: int = 8) -> list[tuple[str, int]]:
    """How many places each category has, the largest first, the small ones together as `other`."""
    counts = Counter(rows["category"].fillna(no_category))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(value for _, value in ranked[limit:])
    return ranked[:limit] + ([(other, rest)] if rest else [])


def by_rating(rows: pd.DataFrame) -> list[tuple[str, int]]:
    """How many places have a rating within each half point, the best first, from the best to the worst there is."""
    ratings = rows["rating"].dropna()
    if ratings.empty:
        return []
    edges = [0.0, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0]
    labels = [f"{low:.1f} – {high:.1f}" for low, high in pairwise(edges)]
    counted = pd.cut(ratings, edges, labels=labels, right=False).fillna(labels[-1]).value_counts()
    found = [(label, int(counted[label])) for label in reversed(labels)]
    used = [index for index, (_, count) in enumerate(found) if count]
    return found[used[0] : used[-1] + 1]


def world_map(rows: pd.DataFrame) -> Map | None:
    """Where the places are: the whole world, or the part they lie in; None when no place has coordinates."""
    located = rows[["latitude", "longitude"]].dropna()
    if located.empty:
        return None
    view = _View.around(located["latitude"], located["longitude"])
    cells = Counter(
        (int(x // _CELL_PX), int(y // _CELL_PX))
        for x, y in map(view.project, located["latitude"].tolist(), located["longitude"].tolist())
    )
    dots = [
        ((x + 0.5) * _CELL_PX, (y + 0.5) * _CELL_PX, round(min(15.0, 2.4 + 1.3 * math.sqrt(count)), 1))
        for (x, y), count in sorted(cells.items(), key=lambda item: (-item[1], item[0]))
    ]
    path = "".join(
        f"M{x:.0f} {y:.0f}h0"
        for x, y in (view.project(latitude, longitude) for latitude, longitude in _world_cells())
        if 0 <= x <= MAP_WIDTH and 0 <= y <= MAP_HEIGHT
    )
    return Map(MAP_WIDTH, MAP_HEIGHT, dots, path, round(min(9.0, 0.62 * view.pixels_per_degree * _WORLD_CELL), 1))


@dataclass(frozen=True, slots=True)
class _View:
    """An equirectangular part of the world that fills the map, east-west distances true in its middle."""

    west: float
    north: float
    pixels_per_degree: float
    squeeze: float

    @classmethod
    def around(cls, latitude: pd.Series[float], longitude: pd.Series[float]) -> _View:
        south, north = float(latitude.min()), float(latitude.max())
        west, east = float(longitude.min()), float(longitude.max())
        squeeze = math.cos(math.radians(min(75.0, abs(north + south) / 2)))
        if east - west > 70 or north - south > 40:
            west, south, east, north = (
                min(west, WORLD[0]),
                min(south, WORLD[1]),
                max(east, WORLD[2]),
                max(north, WORLD[3]),
            )
            squeeze = 1.0
            padding = 0.0
        else:
            padding = max(2.0, (east - west) * 0.15, (north - south) * 0.15)
        across = (east - west + 2 * padding) * squeeze
        down = north - south + 2 * padding
        scale = min(MAP_WIDTH / across, MAP_HEIGHT / down)
        middle = (west + east) / 2, (north + south) / 2
        return cls(middle[0] - MAP_WIDTH / scale / squeeze / 2, middle[1] + MAP_HEIGHT / scale / 2, scale, squeeze)

    def project(self, latitude: float, longitude: float) -> tuple[float, float]:
        x = (longitude - self.west) * self.squeeze * self.pixels_per_degree
        return x, (self.north - latitude) * self.pixels_per_degree


@cache
def _world_cells() -> tuple[tuple[float, float], ...]:
    """Latitude and longitude of the middle of every marked cell."""
    text = resources.files("collection_pipeline.steps").joinpath("templates/world.txt").read_text("utf-8")
    return tuple(
        (90 - (row + 0.5) * _WORLD_CELL, (column + 0.5) * _WORLD_CELL - 180)
        for row, line in enumerate(text.splitlines())
        for column, mark in enumerate(line)
        if mark == "#"
    )
