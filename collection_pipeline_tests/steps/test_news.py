"""News about the top places: who is asked about, and what becomes of the items."""

from __future__ import annotations

import pandas as pd

from collection_pipeline.queries import Query
from collection_pipeline.steps import detail, news, search
from collection_pipeline_tests.steps.answers import answer, detail_answers, feature_id, place, search_answer


def details(count: int, **fields: object) -> pd.DataFrame:
    query = Query("airports")
    results = search.rows(
        [query], [search_answer(request, [place(i) for i in range(count)]) for request in search.requests([query])]
    ).rows
    parts = detail.rows(results, detail_answers(list(detail.requests(results)), **fields))
    return pd.concat([part.rows for part in parts], ignore_index=True)


def test_news_is_asked_for_the_top_places_by_their_names() -> None:
    places = details(5)
    requests = news.requests(places.iloc[::-1], top=2)
    assert [request.params["q"] for request in requests] == [f'"{name}"' for name in places["name"][:2]]
    assert {request.endpoint for request in requests} == {"news"}


def test_places_of_one_name_share_a_request_and_each_gets_its_rows() -> None:
    places = details(3, name="Jade Leaf")
    requests = news.requests(places)
    assert len(requests) == 1
    rows, _ = news.rows(places, [answer(requests[0], {"news": [{"title": "Opened"}]})])
    assert rows["feature_id"].tolist() == [feature_id(i) for i in range(3)]


def test_a_name_cannot_break_out_of_its_quotes_nor_grow_without_end() -> None:
    request = news.requests(details(1, name=f'a" OR "b {"x" * 1000}'))[0]
    assert str(request.params["q"]).count('"') == 2
    assert len(str(request.params["q"])) == news.MAX_NAME + 2


def test_times_stay_the_text_they_were() -> None:
    places = details(1)
    item = {"title": "T", "link": "https://n.example/1", "source": "S", "time": "3 hours ago", "published_at": "7:13"}
    row = news.rows(places, [answer(news.requests(places)[0], {"news": [item]})]).rows.iloc[0]
    assert (row["time_text"], row["published_at"]) == ("3 hours ago", "7:13")


def test_ranks_count_usable_items_and_every_drop_has_its_reason() -> None:
    places = details(2)
    first, second = news.requests(places)
    items = [{"title": "A", "link": "l"}, {"title": "A again", "link": "l"}, {"link": "m"}, 5, {"title": "B"}]
    rows, losses = news.rows(places, [answer(first, {"news": items}), answer(second, {"news": {}})])
    assert rows[["title", "rank"]].values.tolist() == [["A", 1], ["B", 2]]
    assert losses.dropped == {"repeated_link": 1, "no_title": 1, "not_an_object": 1, "news_not_a_list": 1}


def test_no_news_and_no_answer_are_no_loss() -> None:
    places = details(2)
    rows, losses = news.rows(places, [answer(news.requests(places)[0], {})])
    assert len(rows) == 0
    assert not losses.dropped
