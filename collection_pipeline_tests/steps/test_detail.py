"""Detail pages: each place is asked for once and keeps every query that found it; answers stream in chunks."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from collection_pipeline.datasets import DETAIL_PAGES
from collection_pipeline.engine.datasets import DTYPES
from collection_pipeline.engine.jobs.job import Losses
from collection_pipeline.queries import Query
from collection_pipeline.sources.contract import Answer
from collection_pipeline.steps import detail, search
from collection_pipeline_tests.steps.answers import answer, detail_answers, feature_id, place, search_answer

TEA, CAFE = Query("tea"), Query("café", hl="de", gl="ch")


def found(tea: list[int], cafe: list[int]) -> pd.DataFrame:
    """Search results in which the two queries found these places, in order."""
    requests = search.requests([TEA, CAFE])
    answers = [
        search_answer(request, [place(i) for i in places])
        for request, places in zip(requests, (tea, cafe), strict=True)
    ]
    return search.rows([TEA, CAFE], answers).rows


def read(results: pd.DataFrame, answers: list[Answer], chunk: int = 100) -> tuple[pd.DataFrame, Losses]:
    parts = list(detail.rows(results, answers, chunk))
    return pd.concat([part.rows for part in parts], ignore_index=True), sum((p.losses for p in parts), Losses())


def test_a_place_that_two_queries_found_is_asked_for_once_in_the_language_where_it_ranks_best() -> None:
    requests = list(detail.requests(found(tea=[0, 1], cafe=[1, 2])))
    assert [request.params for request in requests] == [
        {"feature_id": feature_id(0), "hl": "en", "gl": "us"},
        {"feature_id": feature_id(1), "hl": "de", "gl": "ch"},
        {"feature_id": feature_id(2), "hl": "de", "gl": "ch"},
    ]


def test_and_it_keeps_both() -> None:
    results = found(tea=[0, 1], cafe=[1, 2])
    rows, losses = read(results, detail_answers(list(detail.requests(results))))
    row = rows.set_index("feature_id").loc[feature_id(1)]
    assert (row["best_rank"], row["first_query"]) == (1, CAFE.name)
    assert json.loads(str(row["queries"])) == [{"query": CAFE.name, "rank": 1}, {"query": TEA.name, "rank": 2}]
    assert losses == Losses()


def test_queries_of_the_same_rank_are_in_the_order_of_the_file() -> None:
    results = found(tea=[1], cafe=[1])
    rows, _ = read(results, detail_answers(list(detail.requests(results))))
    assert rows["first_query"].tolist() == [TEA.name]


def test_answers_come_in_chunks_of_the_data_sets_types_even_when_nothing_was_answered() -> None:
    results = found(tea=list(range(7)), cafe=[])
    answers = detail_answers(list(detail.requests(results)))
    assert [len(part.rows) for part in detail.rows(results, answers, chunk=3)] == [3, 3, 1]
    for part in (*detail.rows(results, answers, chunk=3), *detail.rows(results, []), *detail.rows(found([], []), [])):
        assert {str(name): str(dtype) for name, dtype in part.rows.dtypes.items()} == {
            column.name: DTYPES[column.kind] for column in DETAIL_PAGES.columns
        }


def test_a_detail_page_in_full() -> None:
    results = found(tea=[0], cafe=[])
    page = place(
        0,
        phone="020 1",
        phone_international="+44 20 1",
        website="https://jade.example",
        hours={"Monday": "09:00-17:00"},
        open_status={},
        attributes=[{"name": "Wi-Fi"}],
        short_description="Good tea",
        photos=["a.jpg"],
    )
    request = next(iter(detail.requests(results)))
    rows, _ = read(results, [answer(request, {"place": page})])
    row = rows.iloc[0]
    assert row["category"] == "Airport"
    assert row["phone"] == "+44 20 1"
    assert row["description"] == "Good tea"
    assert row["hours"] == '{"Monday":"09:00-17:00"}'
    assert row["open_status"] == "{}"
    assert row["attributes"] == '[{"name":"Wi-Fi"}]'
    assert row["extra"] == '{"photos":["a.jpg"]}'


def test_an_answer_about_another_place_stands_under_the_id_asked_for_and_says_so() -> None:
    results = found(tea=[0], cafe=[])
    rows, _ = read(results, [answer(next(iter(detail.requests(results))), {"place": place(0, feature_id="0xa:0xb")})])
    assert rows["feature_id"].tolist() == [feature_id(0)]
    assert json.loads(rows["extra"][0]) == {"feature_id": "0xa:0xb"}


def test_every_drop_is_counted_by_reason() -> None:
    results = found(tea=list(range(6)), cafe=[])
    requests = list(detail.requests(results))
    payloads: list[dict[str, Any]] = [
        {},
        {"place": None},
        {"place": []},
        {"place": {"feature_id": feature_id(3)}},
        {"place": place(4)},
    ]
    answers = [answer(request, payload) for request, payload in zip(requests, payloads, strict=False)]
    rows, losses = read(results, answers)
    assert rows["feature_id"].tolist() == [feature_id(4)]
    assert losses.dropped == {"no_place": 2, "place_not_an_object": 1, "no_name": 1}


def test_wrong_types_become_null_and_are_counted_by_column() -> None:
    results = found(tea=[0], cafe=[])
    page = place(0, rating="4.5", review_count=2**64, latitude=91, address={"city": "Zürich"}, types=7)
    rows, losses = read(results, [answer(next(iter(detail.requests(results))), {"place": page})])
    assert rows[["rating", "review_count", "latitude", "address", "category"]].isna().all(axis=None)
    assert losses.nulled == {"rating": 1, "review_count": 1, "latitude": 1, "address": 1}
