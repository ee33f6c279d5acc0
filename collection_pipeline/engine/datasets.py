"""How a data set is described: once, and its table, its data frame types and its schema check follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from collection_pipeline.engine.declarations import DeclarationError, call_site

Kind = Literal["text", "integer", "number", "boolean", "instant", "json"]
"""Data frame types: text and json (canonical JSON text) are pandas `str`, integer `Int64`, number `float64`,
boolean `boolean`, instant `datetime64[us, UTC]`. Missing values are the type's own."""

DTYPES: Mapping[Kind, str] = {
    "text": "str",
    "json": "str",
    "integer": "Int64",
    "number": "float64",
    "boolean": "boolean",
    "instant": "datetime64[us, UTC]",
}
"""The pandas type of each kind of column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. A `volatile` one (request id, fetch time) is stored but is no content: it does not enter the hash.

    Raises `DeclarationError` for an unknown kind.
    """

    name: str
    kind: Kind
    description: str
    nullable: bool = True
    volatile: bool = False

    def __post_init__(self) -> None:
        if self.kind not in DTYPES:
            raise DeclarationError(
                f"{call_site(2)}: column {self.name} has the kind {self.kind!r}; write one of {', '.join(DTYPES)}."
            )


@dataclass(frozen=True, slots=True)
class Dataset:
    """The rows one job produces. `key` names the columns that identify a row within one artifact.

    Raises `DeclarationError` for a key of columns that it does not have.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        unknown = [name for name in self.key if name not in {column.name for column in self.columns}]
        if unknown:
            raise DeclarationError(
                f"{call_site(2)}: the key of data set {self.name} names {', '.join(unknown)}, which is no column of it."
            )
