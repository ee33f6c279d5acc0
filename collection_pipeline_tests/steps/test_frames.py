"""Untrusted JSON on its way into typed columns: what becomes null, what is dropped, and that both are counted."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collection_pipeline.engine.datasets import DTYPES, Column, Dataset
from collection_pipeline.steps.frames import MAX_DEPTH, Rows, canonical_json

EXAMPLE = Dataset(
    "example",
    (
        Column("name", "text", "required", nullable=False),
        Column("text", "text", ""),
        Column("count", "integer", ""),
        Column("rating", "number", "has bounds"),
        Column("share", "number", ""),
        Column("flag", "boolean", ""),
        Column("at", "instant", ""),
        Column("raw", "json", ""),
    ),
)


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("column", "given_value", "kept"),
    [
        ("text", " tea ", "tea"),
        ("text", "nul\x00 and lone \ud800", "nul\ufffd and lone \ufffd"),
        ("count", 2**63 - 1, 2**63 - 1),
        ("count", 128.0, 128),
        ("rating", 4, 4.0),
        ("flag", False, False),
        ("at", datetime(2026, 11, 28, tzinfo=UTC), pd.Timestamp("2026-11-28", tz="UTC")),
        ("raw", {"b": [1, None], "a": "ü"}, '{"a":"ü","b":[1,null]}'),
        ("raw", "a\x00b\ud83d", '"a\ufffdb\ufffd"'),
        ("raw", "\\u0000", '"\\\\u0000"'),
        ("raw", [], "[]"),
    ],
)
def test_what_fits_is_kept(column: str, given_value: object, kept: object) -> None:
    rows = Rows(EXAMPLE)
    rows.add({"name": "x", column: given_value})
    frame, losses = rows.parsed()
    assert frame[column].tolist() == [kept]
    assert not losses.nulled


@pytest.mark.parametrize(
    ("column", "given_value"),
    [
        ("text", 5),
        ("text", ["tea"]),
        ("text", True),
        ("count", 2**63),
        ("count", -(2**63) - 1),
        ("count", 10**400),
        ("count", 1.5),
        ("count", float("nan")),
        ("count", float("inf")),
        ("count", True),
        ("count", "12"),
        ("share", float("nan")),
        ("share", float("-inf")),
        ("share", 10**400),
        ("rating", float("nan")),
        ("rating", 5.01),
        ("rating", -1),
        ("rating", "4.5"),
        ("flag", 1),
        ("flag", "true"),
        ("at", "2026-11-28"),
        ("raw", float("nan")),
        ("raw", {"a": [float("inf")]}),
        ("raw", deep(MAX_DEPTH + 1)),
        ("raw", deep(100_000)),
    ],
)
def test_what_does_not_fit_becomes_null_and_is_counted(column: str, given_value: object) -> None:
    rows = Rows(EXAMPLE)
    rows.add({"name": "x", column: given_value})
    frame, losses = rows.parsed()
    assert frame[column].isna().tolist() == [True]
    assert losses.nulled == {column: 1}
    assert str(frame.dtypes[column]) == DTYPES[next(item.kind for item in EXAMPLE.columns if item.name == column)]


@pytest.mark.parametrize("value", [None, "", " \t"])
def test_what_is_missing_or_blank_is_null_and_no_loss(value: object) -> None:
    rows = Rows(EXAMPLE)
    rows.add({"name": "x", "text": value})
    frame, losses = rows.parsed()
    assert frame["text"].isna().all()
    assert not losses.nulled


@pytest.mark.parametrize("name", [None, "", 7, ["x"]])
def test_a_row_without_a_required_value_is_dropped_and_counted(name: object) -> None:
    rows = Rows(EXAMPLE)
    assert not rows.add({"name": name, "count": "not a number either"})
    frame, losses = rows.parsed()
    assert len(frame) == 0
    assert losses.dropped == {"no_name": 1}
    assert not losses.nulled


def test_large_integers_next_to_missing_ones_stay_exact() -> None:
    rows = Rows(EXAMPLE)
    for count in (2**53 + 1, None, 7):
        rows.add({"name": "x", "count": count})
    assert rows.parsed().rows["count"].tolist() == [2**53 + 1, pd.NA, 7]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=5), children, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([column.name for column in EXAMPLE.columns]), json_values))
def test_whatever_comes_ends_as_a_typed_row_or_a_counted_drop(raw: dict[str, Any]) -> None:
    rows = Rows(EXAMPLE)
    rows.add(raw)
    frame, losses = rows.parsed()
    assert len(frame) + losses.dropped.total() == 1
    assert [str(dtype) for dtype in frame.dtypes] == [DTYPES[column.kind] for column in EXAMPLE.columns]
    for text in (text for name in ("name", "text", "raw") for text in frame[name].dropna().tolist()):
        text.encode()
        assert "\x00" not in text


@given(json_values)
def test_canonical_json_is_equal_for_equal_values_and_can_be_read_again(value: Any) -> None:
    text = canonical_json(value)
    if text is not None:
        assert canonical_json(json.loads(text)) == text
