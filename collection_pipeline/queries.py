"""What to collect, read from the TOML file that people edit and checked before a run opens."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from collection_pipeline.engine.planning.graph import nearest
from collection_pipeline.engine.visible import shortened

DEFAULT_PATH = Path(__file__).with_name("queries.toml")

MAX_PAGES = 20
"""Own bound, since the vendor names none: a mistyped 200 would cost 400 credits."""

MAX_BYTES = 1_000_000
"""Own bound, some 20,000 queries: whatever is larger is another file."""

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_COUNTRY = re.compile(r"[a-z]{2}", re.ASCII)


class QueriesError(ValueError):
    """The queries file cannot be used; the message names file, entry, field, what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Query:
    """One search to make. `hl` is the language and `gl` the country of the answers; `pages` a limit, at least 1.

    `lat` and `lng` (degrees) come together and centre the search; `zoom` (1 to 21) goes with them.
    """

    q: str
    hl: str = "en"
    gl: str = "us"
    pages: int = 1
    lat: float | None = None
    lng: float | None = None
    zoom: int | None = None

    @property
    def name(self) -> str:
        """What the query is called in rows and reports; two queries with one name would buy the same answers."""
        name = f"{self.q} ({self.hl}, {self.gl})"
        if self.lat is not None and self.lng is not None:
            name += f" @{self.lat},{self.lng}"
        return name if self.zoom is None else f"{name},{self.zoom}z"


def load_queries(path: Path = DEFAULT_PATH) -> tuple[Query, ...]:
    """The queries of a TOML file, one `[[query]]` table each. Raises `QueriesError`."""
    document = _read(path)
    for key in document:
        if key != "query":
            raise QueriesError(
                f"{path}: {shortened(key)!r} is not known here; a query starts with [[query]]."
                f" {nearest(key, ['query'])}"
            )
    entries = document.get("query", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise QueriesError(f"{path}: write [[query]] in double brackets above each query.")
    if not entries:
        raise QueriesError(f'{path}: there is no query in it. Add one:\n\n[[query]]\nq = "Reykjavik airport"\n')
    seen: dict[str, int] = {}
    queries = []
    for number, entry in enumerate(entries, start=1):
        query = _Entry(path, number, entry).query()
        if query.name in seen:
            raise QueriesError(
                f"{path}, entry {number}: it repeats entry {seen[query.name]}, {query.name}, and would be paid"
                " for twice. Remove one, or change q, hl, gl or the coordinates."
            )
        seen[query.name] = number
        queries.append(query)
    return tuple(queries)


def _read(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() and path.exists():  # a pipe would be waited for, and a device may never end
            kind = "folder" if path.is_dir() else "pipe or a device"
            raise QueriesError(f"{path}: this is a {kind}. COLLECTION_QUERIES names a file.")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise QueriesError(f"{path}: it is larger than {MAX_BYTES:,} bytes. COLLECTION_QUERIES names a TOML file.")
        text = content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise QueriesError(f"{path}: there is no such file. COLLECTION_QUERIES names the queries file.") from error
    except UnicodeDecodeError as error:
        raise QueriesError(f"{path}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from error
    except OSError as error:
        raise QueriesError(f"{path}: it cannot be read ({error.strerror}).") from error
    try:
        return tomllib.loads(text)
    except ValueError as error:  # Python's limit of digits included
        raise QueriesError(f'{path}: this is not TOML: {error}. Texts stand in double quotes, q = "…".') from error
    except RecursionError as error:
        raise QueriesError(f"{path}: it is nested too deeply; a query is one [[query]] table.") from error


@dataclass(frozen=True, slots=True)
class _Entry:
    """One `[[query]]` table on its way to a `Query`: every refusal knows where it stands."""

    path: Path
    number: int
    table: Mapping[str, Any]

    def query(self) -> Query:
        known = [item.name for item in fields(Query)]
        for key in self.table:
            if key not in known:
                self._refuse(key, f"is not known. {nearest(key, known)}")
        lat, lng = self._degrees("lat", 90), self._degrees("lng", 180)
        zoom = self._whole("zoom", 1, 21) if "zoom" in self.table else None
        if (lat is None) != (lng is None):
            present, absent = ("lat", "lng") if lng is None else ("lng", "lat")
            self._refuse(absent, f"is missing; {present} and {absent} come together.")
        if zoom is not None and lat is None:
            self._refuse("zoom", "only works with lat and lng; add them or remove it.")
        return Query(
            q=self._words(),
            hl=self._code("hl", "en", _LANGUAGE, "a language code such as en, de or zh-CN"),
            gl=self._code("gl", "us", _COUNTRY, "a country code of two lower-case letters such as us, is or jp"),
            pages=self._whole("pages", 1, MAX_PAGES) if "pages" in self.table else 1,
            lat=lat,
            lng=lng,
            zoom=zoom,
        )

    def _words(self) -> str:
        if "q" not in self.table:
            self._refuse("q", 'is missing; write what to search for, q = "Reykjavik airport".')
        words = " ".join(self._text("q").split())
        if not words:
            self._refuse("q", 'is blank; write what to search for, q = "Reykjavik airport".')
        if not words.isprintable():
            self._refuse("q", "holds a control character; write plain text.")
        return words

    def _code(self, field: str, default: str, pattern: re.Pattern[str], right: str) -> str:
        if field not in self.table:
            return default
        value = self._text(field)
        if not pattern.fullmatch(value):
            self._refuse(field, f"is {shortened(value)!r}; write {right}.")
        return value

    def _text(self, field: str) -> str:
        value = self.table[field]
        if not isinstance(value, str):
            self._refuse(field, f'is {_kind(value)}; write text in double quotes, {field} = "…".')
        return value

    def _whole(self, field: str, lowest: int, highest: int) -> int:
        value = self.table[field]
        if not isinstance(value, int) or isinstance(value, bool):
            self._refuse(field, f"is {_kind(value)}; write a whole number from {lowest} to {highest}.")
        if not lowest <= value <= highest:
            self._refuse(field, f"is {_shown(value)}; write a whole number from {lowest} to {highest}.")
        return value

    def _degrees(self, field: str, bound: int) -> float | None:
        if field not in self.table:
            return None
        value = self.table[field]
        if not isinstance(value, int | float) or isinstance(value, bool):
            self._refuse(field, f"is {_kind(value)}; write degrees from -{bound} to {bound}, {field} = 12.5.")
        if not -bound <= value <= bound:
            self._refuse(field, f"is {_shown(value)}; write degrees from -{bound} to {bound}.")
        return float(value) + 0.0  # -0.0 is the same place as 0.0

    def _refuse(self, field: str, problem: str) -> NoReturn:
        raise QueriesError(f"{self.path}, entry {self.number}, field {shortened(field)!r}: it {problem}")


def _shown(number: float) -> str:
    """A number in a refusal: Python does not print whole ones of thousands of digits."""
    return "far too large" if isinstance(number, int) and abs(number) > 10**12 else str(number)


def _kind(value: object) -> str:
    """What TOML calls the type of a value, in words."""
    names = {bool: "a boolean", str: "text", int: "a whole number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")
