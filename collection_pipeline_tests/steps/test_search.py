"""Map search: when the next page is asked for, what a rank counts, and what is dropped."""

from __future__ import annotations

from typing import Any

from collection_pipeline.queries import Query
from collection_pipeline.sources.contract import Answer
from collection_pipeline.steps import search
from collection_pipeline_tests.steps.answers import RECEIVED_AT, answer, feature_id, place, search_answer

TEA = Query("tea", pages=3)
CAFE = Query("café", hl="de", gl="ch", lat=47.4, lng=8.5, zoom=12)


def collect(query: Query, *pages: list[Any] | None) -> list[Answer]:
    """The answers of a query whose pages hold these places, asked for as an asset asks."""
    answers: list[Answer] = []
    for page in range(1, query.pages + 1):
        found = pages[page - 1] if page <= len(pages) else None
        answers += [search_answer(request, found) for request in search.requests([query], page, answers)]
    return answers


def test_a_request_holds_what_the_query_says_and_no_nulls() -> None:
    first, second = search.requests([TEA, CAFE])
    assert first.params == {"q": "tea", "hl": "en", "gl": "us", "page": 1}
    assert second.params == {"q": "café", "hl": "de", "gl": "ch", "page": 1, "lat": 47.4, "lng": 8.5, "zoom": 12}
    assert search.last_page([TEA, CAFE]) == 3
    assert search.last_page([]) == 0


def test_pages_follow_up_to_the_querys_limit() -> None:
    answers = collect(TEA, [place(0)], [place(1)], [place(2)], [place(3)])
    assert [item.request.params["page"] for item in answers] == [1, 2, 3]
    assert search.requests([TEA], 4, answers) == []


def test_pages_end_where_places_are_missing_or_empty_or_bring_nothing_new() -> None:
    for last in (None, [], [place(0)], [{"name": "without an id"}], "not a list"):
        answers = collect(TEA, [place(0), place(1)], last, [place(9)])  # type: ignore[arg-type]
        assert len(answers) == 2, last


def test_pages_end_after_one_that_was_not_answered() -> None:
    assert search.requests([TEA], 2, []) == []


def test_each_query_ends_by_itself() -> None:
    other = Query("coffee", pages=2)
    first = search.requests([TEA, other])
    answers = [search_answer(first[0], None), search_answer(first[1], [place(0)])]
    assert [request.params["q"] for request in search.requests([TEA, other], 2, answers)] == ["coffee"]


def test_ranks_run_on_across_pages_and_count_what_could_not_be_used() -> None:
    unusable = {"name": "no id"}
    answers = collect(TEA, [place(0), unusable, place(1)], [place(1), place(2)])
    rows, losses = search.rows([TEA], answers)
    assert rows[["feature_id", "rank", "page"]].values.tolist() == [
        [feature_id(0), 1, 1],
        [feature_id(1), 3, 1],
        [feature_id(2), 4, 2],
    ]
    assert losses.dropped == {"no_feature_id": 1, "repeated_in_query": 1}


def test_a_query_that_was_answered_without_a_usable_place_is_counted_with_none() -> None:
    empty, useless, unanswered = Query("empty"), Query("useless"), Query("unanswered")
    answers = [*collect(TEA, [place(0), place(1)]), *collect(empty, None), *collect(useless, [{"name": "no id"}])]
    _, losses = search.rows([TEA, empty, useless, unanswered], answers)
    assert losses.found == {TEA.name: 2, empty.name: 0, useless.name: 0}
    assert (losses + losses).found == {TEA.name: 4, empty.name: 0, useless.name: 0}


def test_the_order_in_which_answers_arrive_does_not_matter() -> None:
    answers = collect(TEA, [place(0), place(1)], [place(2)])
    other = [search_answer(request, [place(1)]) for request in search.requests([CAFE])]
    forwards, backwards = search.rows([TEA, CAFE], answers + other), search.rows([TEA, CAFE], (answers + other)[::-1])
    assert forwards.rows.equals(backwards.rows)
    assert forwards.rows["query"].tolist() == [TEA.name] * 3 + [CAFE.name]


def test_a_row_says_where_it_comes_from() -> None:
    request = search.requests([CAFE])[0]
    row = search.rows([CAFE], [search_answer(request, [place(5)])]).rows.iloc[0]
    assert (row["query"], row["q"], row["hl"], row["gl"]) == (CAFE.name, "café", "de", "ch")
    assert row["request_id"] == f"req-{request.fingerprint[:12]}"
    assert row["fetched_at"] == RECEIVED_AT


def test_every_drop_is_counted_by_reason() -> None:
    request = search.requests([TEA])[0]
    places = [
        place(0),
        "text",
        None,
        {},
        place(1, feature_id=None),
        place(1, feature_id=12),
        place(1, feature_id=""),
        place(1, feature_id="0x1:0x2 or else"),
        place(1, feature_id="0x" + "f" * 500),
        place(2, name=None, title=None),
        place(2, name=7, title=[]),
        place(3, name=7, title="the title serves as a name"),
        place(4, name=" ", title="so it does here"),
        place(0),
    ]
    rows, losses = search.rows([TEA], [search_answer(request, places)])
    assert rows["feature_id"].tolist() == [feature_id(0), feature_id(3), feature_id(4)]
    assert losses.dropped == {"not_an_object": 2, "no_feature_id": 6, "no_name": 2, "repeated_in_query": 1}


def test_nothing_found_is_an_empty_frame_and_no_loss() -> None:
    rows, losses = search.rows([TEA], [answer(search.requests([TEA])[0], {})])
    assert len(rows) == 0
    assert rows.dtypes.equals(search.rows([], []).rows.dtypes)
    assert not losses.dropped


def test_places_of_a_wrong_type_are_counted() -> None:
    _, losses = search.rows([TEA], [answer(search.requests([TEA])[0], {"places": {"0": {}}})])
    assert losses.dropped == {"places_not_a_list": 1}
