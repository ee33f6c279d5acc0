"""What goes in comes out: every type, every missing value, in whole or in chunks, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collection_pipeline.engine.datasets import Column, Dataset
from collection_pipeline.engine.store import FrameError, Store, UnknownArtifactError
from collection_pipeline.engine.store.frames import ContentHash, to_arrow
from collection_pipeline_tests.store.world import PLACES, World, dataset_of, places

text = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
instants = st.datetimes(timezones=st.just(UTC))
rows = st.lists(
    st.tuples(
        text,
        text,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.booleans(),
        st.none() | instants,
        st.sampled_from([None, "{}", '{"a":[1,2.50,"é"]}', '"\\u0000"', '{"b":1,"a":2,"a":3}', "12345678901234567890"]),
        text,
    ),
    max_size=30,
)


def frame_of(values: list[tuple[Any, ...]]) -> pd.DataFrame:
    dtypes = ["str", "str", "Int64", "float64", "boolean", "datetime64[us, UTC]", "str", "str"]
    columns = list(zip(*values, strict=True)) if values else [()] * len(dtypes)
    return pd.DataFrame(
        {
            column.name: pd.Series(list(given_values), dtype=dtype)
            for column, given_values, dtype in zip(PLACES.columns, columns, dtypes, strict=True)
        }
    )


def test_a_frame_comes_back_as_it_was_published(world: World) -> None:
    world.open("2026-11-29")

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(rows, st.integers(1, 7))
    def check(values: list[tuple[Any, ...]], chunk: int) -> None:
        frame = frame_of(values)
        chunks = [frame.iloc[start : start + chunk] for start in range(0, len(frame), chunk)]
        published = world.publish(world.claim("2026-11-29", "search"), chunks)
        assert published.row_count == len(frame)
        dataset = dataset_of("search")
        pd.testing.assert_frame_equal(world.store.read(dataset, published.artifact), frame)
        parts = list(world.store.read_chunks(dataset, published.artifact, rows=3))
        assert all(0 < len(part) <= 3 for part in parts)
        if parts:
            pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), frame)

    check()


def test_reading_while_this_process_writes_gives_the_same_rows(world: World) -> None:
    """On SQLite the fast reader must not open the file then; the rows come over the connection there is."""
    world.open("2026-11-29")
    [published] = world.done("2026-11-29", "search")
    dataset = dataset_of("search")
    seen: list[pd.DataFrame] = []

    def frames() -> Any:
        yield places("first")
        seen.append(world.store.read(dataset, published.artifact))
        yield places("second")

    world.publish(world.claim("2026-11-29", "details"), frames())
    pd.testing.assert_frame_equal(seen[0], places("Reykjavík", "東京"))


def test_some_columns_in_another_order(world: World) -> None:
    world.open("2026-11-29")
    [published] = world.done("2026-11-29", "search")
    frame = world.store.read(dataset_of("search"), published.artifact, ["name", "place_id"])
    pd.testing.assert_frame_equal(frame, places("Reykjavík", "東京")[["name", "place_id"]])


def test_a_column_that_there_is_not_is_named_with_the_nearest(world: World) -> None:
    world.open("2026-11-29")
    [published] = world.done("2026-11-29", "search")
    with pytest.raises(FrameError, match=r"search_places has no column 'nam'\. Did you mean 'name'\?"):
        world.store.read(dataset_of("search"), published.artifact, ["nam"])


def test_no_rows_and_no_frames_are_artifacts_too(world: World) -> None:
    world.open("2026-11-29")
    for frames in ([], [places()]):
        published = world.publish(world.claim("2026-11-29", "search"), frames)
        frame = world.store.read(dataset_of("search"), published.artifact)
        assert list(frame.dtypes.astype(str)) == list(places().dtypes.astype(str))
        assert frame.empty


def test_a_column_whose_first_values_are_missing_keeps_its_type(world: World) -> None:
    world.open("2026-11-29")
    frame = places(*map(str, range(3000)))
    frame.loc[:2998, ["name", "extra", "request_id"]] = None
    frame.loc[:2998, ["visits", "is_open"]] = pd.NA
    frame.loc[:2998, "score"] = np.nan
    frame.loc[:2998, "seen_at"] = pd.NaT
    published = world.publish(world.claim("2026-11-29", "search"), [frame])
    pd.testing.assert_frame_equal(world.store.read(dataset_of("search"), published.artifact), frame)


def test_a_version_that_never_was_is_named(world: World) -> None:
    world.open("2026-11-29")
    [published] = world.done("2026-11-29", "search")
    with pytest.raises(UnknownArtifactError, match="no version 1 of details in run 2026-11-29"):
        world.store.read(dataset_of("details"), published.artifact.__class__("details", "2026-11-29", 1, world.now, ""))


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("name", ["a\0b"], "Column name .* NUL"),
        ("name", ["\ud800"], "Column name .* lone surrogate"),
        ("name", [7], "Column name .* no text"),
        ("visits", [2**63], "Column visits .* no integer"),
        ("visits", [1.5], "Column visits .* no integer"),
        ("score", ["good"], "Column score .* no number"),
        ("is_open", ["yes"], "Column is_open .* no boolean"),
        ("seen_at", [datetime(2026, 11, 29)], "Column seen_at .* no instant"),  # noqa: DTZ001
        ("seen_at", [datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 29)], "Column seen_at .* time zone"),  # noqa: DTZ001
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_column(column: str, values: list[Any], words: str) -> None:
    frame = places(*"xy"[: len(values)]).astype({column: object})
    frame[column] = pd.Series(values, dtype=object)
    with pytest.raises(FrameError, match=words):
        to_arrow(frame, PLACES)


def test_columns_that_are_missing_or_not_described_are_named() -> None:
    with pytest.raises(FrameError, match=r"missing \['name'\], not described \['nom'\]"):
        to_arrow(places("x").rename(columns={"name": "nom"}), PLACES)


def test_text_that_is_no_json_is_refused_by_postgresql(postgres_url: str) -> None:
    """SQLite keeps JSON as text and does not look into it: parsing it twice would cost a quarter of the write."""
    with Store.open(postgres_url) as store:
        world = World(store)
        world.open("2026-11-29")
        frame = places("x")
        frame["extra"] = pd.array(["{"], dtype="str")
        with pytest.raises(FrameError, match="json column of search_places"):
            world.publish(world.claim("2026-11-29", "search"), [frame])


def hash_of(*frames: pd.DataFrame, dataset: Dataset = PLACES) -> str:
    content = ContentHash(dataset)
    for frame in frames:
        content.update(to_arrow(frame, dataset))
    return content.hexdigest()


class TestContentHash:
    @settings(max_examples=50, deadline=None)
    @given(rows, st.integers(1, 5))
    def test_does_not_depend_on_how_the_rows_were_cut(self, values: list[tuple[Any, ...]], size: int) -> None:
        frame = frame_of(values)
        assert hash_of(frame) == hash_of(*(frame.iloc[at : at + size] for at in range(0, len(frame), size)))

    @settings(max_examples=100, deadline=None)
    @given(rows, rows)
    def test_differs_exactly_when_the_content_does(
        self, one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]
    ) -> None:
        content = [[row[:-1] for row in values] for values in (one, other)]
        assert (hash_of(frame_of(one)) == hash_of(frame_of(other))) == (content[0] == content[1])

    def test_volatile_columns_are_no_content(self) -> None:
        assert hash_of(places("a", request_id="r-1")) == hash_of(places("a", request_id="r-2"))

    def test_missing_is_neither_empty_nor_zero(self) -> None:
        full, missing = places("", "b"), places("", "b")
        full["visits"] = pd.array([0, 0], dtype="Int64")
        missing["visits"] = pd.array([0, None], dtype="Int64")
        assert hash_of(full) != hash_of(missing)
        missing = full.copy()
        missing.loc[0, "name"] = None
        assert hash_of(full) != hash_of(missing)

    def test_text_that_moves_between_rows_or_columns_is_a_change(self) -> None:
        assert hash_of(places("ab", "c")) != hash_of(places("a", "bc"))
        two = Dataset("two", (Column("a", "text", ""), Column("b", "text", "")))
        assert hash_of(pd.DataFrame({"a": ["x"], "b": ["y"]}), dataset=two) != hash_of(
            pd.DataFrame({"a": ["y"], "b": ["x"]}), dataset=two
        )

    def test_a_slice_of_a_larger_array_hashes_as_its_own_rows(self) -> None:
        batch = to_arrow(places("a", "b", "c"), PLACES)
        sliced, whole = ContentHash(PLACES), ContentHash(PLACES)
        sliced.update(batch.slice(1, 2))
        whole.update(pa.RecordBatch.from_pandas(batch.slice(1, 2).to_pandas(), schema=batch.schema))
        assert sliced.hexdigest() == whole.hexdigest()
