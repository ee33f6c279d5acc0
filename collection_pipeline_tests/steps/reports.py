"""Reports to look at: the airports that two queries found, on two days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from collection_pipeline.engine.checks import CallCounts
from collection_pipeline.queries import Query
from collection_pipeline.sources.contract import Answer
from collection_pipeline.steps import detail, news, search
from collection_pipeline.steps.report import Inputs, Provenance
from collection_pipeline_tests.steps.answers import answer, place, search_answer

MOMENT = datetime(2026, 11, 29, tzinfo=UTC)
YESTERDAY = MOMENT - timedelta(days=1)
TEA, CAFE = Query("tea"), Query("café", hl="zh-CN", gl="cn")


def details(places: Sequence[dict[str, Any]], also: Sequence[dict[str, Any]] = ()) -> pd.DataFrame:
    """`detail_pages` rows of the places that one query found, some of which another found as well."""
    answers = [
        search_answer(request, found)
        for request, found in zip(search.requests([TEA, CAFE]), (places, also), strict=True)
    ]
    results = search.rows([TEA, CAFE], answers).rows
    pages = {str(found["feature_id"]): found for found in (*places, *also)}
    bought: list[Answer] = [
        answer(request, {"place": pages[str(request.params["feature_id"])]}) for request in detail.requests(results)
    ]
    return pd.concat([part.rows for part in detail.rows(results, bought)], ignore_index=True)


def mentions(places: pd.DataFrame, items: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """`news_mentions` rows: the same items about each of the top places."""
    bought = [answer(request, {"news": list(items)}) for request in news.requests(places)]
    return news.rows(places, bought).rows


def artifact(
    job_id: str = "detail_pages",
    run_id: str = "2026-11-29",
    *,
    degraded: bool = False,
) -> Provenance:
    as_of = YESTERDAY if degraded else MOMENT
    return Provenance(job_id, run_id, 2, as_of, degraded, 30, 60, ("5b0f6c1e-7b1d", "5b0f6c1e-7b1e"), 30)


def inputs(**changed: Any) -> Inputs:
    """A whole report on thirty places of the run's own day; `changed` replaces what a test is about."""
    values: dict[str, Any] = {
        "run_id": "2026-11-29",
        "moment": MOMENT,
        "as_of": MOMENT,
        "collected_at": MOMENT,
        "timezone": ZoneInfo("UTC"),
        "language": "en",
        "source": "SerpBase",
        "emulated": False,
        "coverage": CallCounts(30, 30),
        "provenance": (artifact("search_results"), artifact()),
    } | changed
    if "details" not in values:
        values["details"] = details([place(i) for i in range(30)], [place(i) for i in range(25, 32)])
    return Inputs(**values)
