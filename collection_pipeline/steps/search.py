"""Map search: the requests for a list of queries, page by page, and the rows of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from collection_pipeline.datasets import SEARCH_RESULTS
from collection_pipeline.queries import Query
from collection_pipeline.sources.contract import Answer, ApiRequest
from collection_pipeline.steps.frames import Parsed, Rows
from collection_pipeline.steps.places import is_feature_id, read_place


def last_page(queries: Iterable[Query]) -> int:
    """The highest page number any query may reach; 0 without queries."""
    return max((query.pages for query in queries), default=0)


def requests(queries: Sequence[Query], page: int = 1, answers: Iterable[Answer] = ()) -> list[ApiRequest]:
    """The calls for one page of every query that is still worth a page, given all answers so far.

    A query ends at its page limit and after a page without an answer, without places or without a new feature_id.
    Ask for the pages in order, 1 to `last_page(queries)`.
    """
    if page == 1:
        return [_request(query, 1) for query in queries]
    pages = _pages(queries, answers)
    wanted = (query for query in queries if page <= query.pages and _brought_news(pages.get(query, {}), page - 1))
    return [_request(query, page) for query in wanted]


def rows(queries: Sequence[Query], answers: Iterable[Answer]) -> Parsed:
    """One row per query and place, in the order of the queries and the ranks of their pages.

    A rank counts every distinct entry of the query's pages, unusable ones included: they had their place in the list.
    """
    collected = Rows(SEARCH_RESULTS)
    pages = _pages(queries, answers)
    for query in queries:
        rank, before = 0, len(collected)
        seen: set[str] = set()
        for page, answer in sorted(pages.get(query, {}).items()):
            for place in _places(answer, collected):
                feature_id = place.get("feature_id") if isinstance(place, dict) else None
                if isinstance(feature_id, str) and feature_id in seen:
                    collected.drop("repeated_in_query")
                    continue
                rank += 1
                if not isinstance(place, dict):
                    collected.drop("not_an_object")
                elif not is_feature_id(feature_id):
                    collected.drop("no_feature_id")
                elif collected.add(
                    {
                        **read_place(place),
                        "query": query.name,
                        "rank": rank,
                        "page": page,
                        "q": query.q,
                        "hl": query.hl,
                        "gl": query.gl,
                        "request_id": answer.request_id,
                        "fetched_at": answer.received_at,
                    }
                ):
                    seen.add(str(feature_id))
        if query in pages:
            collected.losses.found[query.name] = len(collected) - before
    return collected.parsed()


def _request(query: Query, page: int) -> ApiRequest:
    centre = {"lat": query.lat, "lng": query.lng, "zoom": query.zoom}
    given = {name: value for name, value in centre.items() if value is not None}
    return ApiRequest("maps_search", {"q": query.q, "hl": query.hl, "gl": query.gl, "page": page, **given})


def _pages(queries: Sequence[Query], answers: Iterable[Answer]) -> dict[Query, dict[int, Answer]]:
    """The answers by query and page number."""
    asked = {
        _request(query, page).fingerprint: (query, page) for query in queries for page in range(1, query.pages + 1)
    }
    pages: dict[Query, dict[int, Answer]] = {}
    for answer in answers:
        query, page = asked[answer.request.fingerprint]
        pages.setdefault(query, {})[page] = answer
    return pages


def _brought_news(pages: dict[int, Answer], page: int) -> bool:
    """Whether `page` was answered with a place that no earlier page had."""
    if page not in pages:
        return False
    earlier = {feature_id for number in range(1, page) if number in pages for feature_id in _feature_ids(pages[number])}
    return any(feature_id not in earlier for feature_id in _feature_ids(pages[page]))


def _feature_ids(answer: Answer) -> Iterator[str]:
    places = answer.payload().get("places")
    for place in places if isinstance(places, list) else ():
        if isinstance(place, dict) and is_feature_id(place.get("feature_id")):
            yield place["feature_id"]


def _places(answer: Answer, collected: Rows) -> list[Any]:
    places = answer.payload().get("places")
    if isinstance(places, list):
        return places
    if places is not None:
        collected.drop("places_not_a_list")
    return []
