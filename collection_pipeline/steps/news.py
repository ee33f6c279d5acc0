"""News about the top places of the run: one request per place name, and the items of the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from collection_pipeline.datasets import NEWS_MENTIONS
from collection_pipeline.sources.contract import Answer, ApiRequest
from collection_pipeline.steps.frames import Parsed, Rows
from collection_pipeline.steps.ranking import ordered

TOP = 10
MAX_NAME = 200
"""Characters of a place's name that are searched for; clients of such services cap queries at about this."""


def requests(details: pd.DataFrame, top: int = TOP) -> list[ApiRequest]:
    """One call for each of the `top` places of `detail_pages` rows; places of one name share a call."""
    return list({request.fingerprint: request for _, _, request in _asked(details, top)}.values())


def rows(details: pd.DataFrame, answers: Iterable[Answer], top: int = TOP) -> Parsed:
    """One row per place and news item, the places in their order. No news about a place is a fact, not a loss."""
    collected = Rows(NEWS_MENTIONS)
    by_request = {answer.request.fingerprint: answer for answer in answers}
    for feature_id, name, request in _asked(details, top):
        if request.fingerprint in by_request:
            _add(collected, feature_id, name, by_request[request.fingerprint])
    return collected.parsed()


def _asked(details: pd.DataFrame, top: int) -> Iterator[tuple[str, str, ApiRequest]]:
    """(feature_id, name, request) of the places that news is asked for."""
    places = ordered(details).head(top)
    for feature_id, name, hl, gl in zip(
        *(places[column] for column in ("feature_id", "name", "hl", "gl")), strict=True
    ):
        quoted = " ".join(name.replace('"', " ").split())[:MAX_NAME]
        yield feature_id, name, ApiRequest("news", {"q": f'"{quoted}"', "hl": hl, "gl": gl, "page": 1})


def _add(collected: Rows, feature_id: str, name: str, answer: Answer) -> None:
    items = answer.payload().get("news")
    if items is not None and not isinstance(items, list):
        collected.drop("news_not_a_list")
        return
    rank = 0
    links: set[str] = set()
    for item in items or ():
        if not isinstance(item, dict):
            collected.drop("not_an_object")
            continue
        link = item.get("link")
        if isinstance(link, str) and link in links:
            collected.drop("repeated_link")
            continue
        if collected.add(_row(item, feature_id, name, rank + 1, answer)):
            rank += 1
            if isinstance(link, str):
                links.add(link)


def _row(item: Mapping[str, Any], feature_id: str, name: str, rank: int, answer: Answer) -> dict[str, Any]:
    return {
        "feature_id": feature_id,
        "place_name": name,
        "rank": rank,
        **{field: item.get(field) for field in ("title", "link", "source", "published_at", "snippet", "thumbnail_url")},
        "time_text": item.get("time"),
        "request_id": answer.request_id,
        "fetched_at": answer.received_at,
    }
