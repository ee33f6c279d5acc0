"""Detail pages: one request per distinct place that the search found, and their answers in chunks of flat memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from collection_pipeline.datasets import DETAIL_PAGES
from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.sources.contract import Answer, ApiRequest
from collection_pipeline.steps.frames import Parsed, Rows, canonical_json
from collection_pipeline.steps.places import other_fields, read_place

CHUNK = 1_000
"""Answers in memory at a time, about 10 MB; half as many take a third longer, larger chunks are hardly faster."""

NEEDED = ("feature_id", "rank", "query", "hl", "gl")
"""The columns of `search_results` that details are made from."""

_FROM_SEARCH = ("best_rank", "first_query", "queries", "hl", "gl")
_FROM_ANSWER = Dataset(
    DETAIL_PAGES.name, tuple(column for column in DETAIL_PAGES.columns if column.name not in _FROM_SEARCH)
)


def distinct(found: pd.DataFrame) -> pd.DataFrame:
    """The places of `search_results` rows, each once, indexed by feature_id, the best ranks first.

    Columns: best_rank, first_query, queries (canonical JSON, in order of rank), and the hl and gl to ask details
    with, which are those of the first query.
    """
    ranked = _ranked(found)
    places = ranked.drop_duplicates("feature_id").set_index("feature_id")
    places = places.rename(columns={"rank": "best_rank", "query": "first_query"})
    seen: dict[str, list[dict[str, str | int]]] = {}
    # As lists: read one by one, Arrow's texts become Python's forty times as slowly.
    columns = (ranked[name].tolist() for name in ("feature_id", "query", "rank"))
    for feature_id, query, rank in zip(*columns, strict=True):
        seen.setdefault(feature_id, []).append({"query": query, "rank": rank})
    queries = [canonical_json(each) for each in seen.values()]
    return places.assign(queries=pd.Series(queries, index=places.index, dtype="str"))


def _ranked(found: pd.DataFrame) -> pd.DataFrame:
    return found[list(NEEDED)].sort_values("rank", kind="stable")


def requests(found: pd.DataFrame) -> Iterator[ApiRequest]:
    """One call per distinct place of `search_results` rows, the best ranks first."""
    asked = _ranked(found).drop_duplicates("feature_id")[["feature_id", "hl", "gl"]]
    for start in range(0, len(asked), CHUNK):
        part = asked.iloc[start : start + CHUNK]
        for feature_id, hl, gl in zip(*(part[name].tolist() for name in part), strict=True):
            yield ApiRequest("maps_detail", {"feature_id": feature_id, "hl": hl, "gl": gl})


def rows(found: pd.DataFrame, answers: Iterable[Answer], chunk: int = CHUNK) -> Iterator[Parsed]:
    """The answers to `requests` as rows, with what the search knew about each place; `chunk` of them held at a time.

    A row stands under the feature_id that was asked for. An answer that names another one (the source may have merged
    two places) keeps it in `extra`.
    """
    collected = Rows(_FROM_ANSWER)
    for answer in answers:
        _add(collected, answer)
        if len(collected) >= chunk:
            yield _joined(collected.parsed(), found)
            collected = Rows(_FROM_ANSWER)
    yield _joined(collected.parsed(), found)


def _add(collected: Rows, answer: Answer) -> None:
    feature_id = str(answer.request.params["feature_id"])
    place = answer.payload().get("place")
    if place is None:
        collected.drop("no_place")
    elif not isinstance(place, dict):
        collected.drop("place_not_an_object")
    else:
        extra = other_fields(place)
        answered_id = place.get("feature_id")
        if answered_id is not None and answered_id != feature_id:
            extra = {**extra, "feature_id": answered_id}
        trace = {"request_id": answer.request_id, "fetched_at": answer.received_at}
        collected.add({**read_place(place), **trace, "feature_id": feature_id, "extra": extra or None})


def _joined(parsed: Parsed, found: pd.DataFrame) -> Parsed:
    """The rows with what the search knew about their places."""
    feature_ids = parsed.rows["feature_id"]
    places = distinct(found[found["feature_id"].isin(feature_ids)])
    known = places.loc[feature_ids, list(_FROM_SEARCH)].reset_index(drop=True)
    return Parsed(parsed.rows.join(known)[[column.name for column in DETAIL_PAGES.columns]], parsed.losses)
