"""Rows on their way into a data frame: one place where untrusted JSON becomes the types a data set describes.

A value of the wrong type becomes null, a row without what its data set requires is dropped, and both are counted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd

from collection_pipeline.engine.datasets import DTYPES, Dataset, Kind
from collection_pipeline.engine.jobs.job import Losses

BOUNDS: Mapping[str, tuple[float, float]] = {
    "rating": (0, 5),
    "review_count": (0, 2**63 - 1),
    "latitude": (-90, 90),
    "longitude": (-180, 180),
}
"""What the columns of a place can mean, beyond their type."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Neither UTF-8 nor PostgreSQL text has room for these."""

MAX_DEPTH = 64
"""Deeper JSON is nobody's opening hours; databases give up at about the same depth."""


class Parsed(NamedTuple):
    """Rows with their data set's exact columns and types, and what was lost on the way."""

    rows: pd.DataFrame
    losses: Losses


def storable(text: str) -> str:
    """The text with NUL and lone surrogates, which no database takes, replaced by U+FFFD."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def _text(value: Any) -> str | None:
    return storable(value).strip() or None if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -(2**63) <= value < 2**63 else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _instant(value: Any) -> datetime | None:
    return value if isinstance(value, datetime) else None


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical_json(value: Any) -> str | None:
    """Equal text for equal values, safe to store; None for what JSON or the databases cannot hold."""
    try:
        text = _ENCODER.encode(value)
    except (ValueError, RecursionError):
        return None
    if _depth_exceeded(text):
        return None
    if "\\u0000" in text or (not text.isascii() and _UNSTORABLE.search(text)):
        text = _ENCODER.encode(_storable_json(value))
    return text


def _depth_exceeded(text: str) -> bool:
    # A cheap upper bound first: brackets inside strings count as well, and only then is the value walked.
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text):
        if token[0] in "[{":
            level += 1
            if level > MAX_DEPTH:
                return True
        elif token[0] in "]}":
            level -= 1
    return False


def _storable_json(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable_json(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _storable_json(item) for key, item in value.items()}
    return value


_COERCE: Mapping[Kind, Callable[[Any], Any]] = {
    "text": _text,
    "json": canonical_json,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "instant": _instant,
}


class Rows:
    """Collects the rows of one data set column by column, and what was lost."""

    def __init__(self, dataset: Dataset) -> None:
        self.losses = Losses()
        self._dataset = dataset
        self._columns = [
            (column.name, column.nullable, _COERCE[column.kind], BOUNDS.get(column.name)) for column in dataset.columns
        ]
        self._rows: list[list[Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def drop(self, reason: str) -> None:
        """Count a row that could not be used."""
        self.losses.dropped[reason] += 1

    def add(self, raw: Mapping[str, Any]) -> bool:
        """Coerce and keep one row, or drop it as `no_<column>` for want of a required value."""
        row = []
        nulled = []
        for name, nullable, coerce, bounds in self._columns:
            given = raw.get(name)
            value = None if given is None else coerce(given)
            if bounds is not None and value is not None and not bounds[0] <= value <= bounds[1]:
                value = None
            if value is None:
                if not nullable:
                    self.drop(f"no_{name}")
                    return False
                if given is not None and not _is_blank(given):
                    nulled.append(name)
            row.append(value)
        if nulled:
            self.losses.nulled.update(nulled)
        self._rows.append(row)
        return True

    def parsed(self) -> Parsed:
        """The rows collected so far as a frame of the data set's columns, in its order."""
        names = [name for name, *_ in self._columns]
        values = zip(*self._rows, strict=True) if self._rows else [()] * len(names)
        return Parsed(frame(self._dataset, dict(zip(names, values, strict=True))), self.losses)


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def frame(dataset: Dataset, values: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    """A frame with exactly the data set's columns and types; the values already fit them."""
    return pd.DataFrame(
        {column.name: pd.Series(values[column.name], dtype=DTYPES[column.kind]) for column in dataset.columns},
        columns=[column.name for column in dataset.columns],
    )
