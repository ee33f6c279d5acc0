"""What the page, the picture and the summary show of a report: chosen, counted and bounded, not yet drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from collection_pipeline.steps import charts
from collection_pipeline.steps.report_inputs import Inputs
from collection_pipeline.steps.report_table import Changes
from collection_pipeline.texts import Language, text

TOP_SHOWN = 25
"""Places listed on the page; the files have all of them."""

CHANGES_SHOWN = 8
NEWS_SHOWN, NEWS_SHOWN_PER_PLACE = 12, 2
REQUEST_IDS_SHOWN = 3


@dataclass(frozen=True)
class Listed:
    """The first of a list of rows, and how many there are."""

    rows: Sequence[dict[str, Any]]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


@dataclass(frozen=True)
class View:
    """The content of one report, ready for the templates. Texts in it are still untrusted."""

    inputs: Inputs
    first_line: str
    places: Listed
    mean_rating: float | None
    rated: int
    shared: int
    new: Listed | None
    gone: Listed | None
    moved: Listed | None
    changed: bool
    news: Listed | None
    news_places: int
    by_query: Sequence[charts.Bar]
    by_category: Sequence[charts.Bar]
    by_rating: Sequence[charts.Bar]
    map: charts.Map | None
    located: int

    @property
    def language(self) -> Language:
        return self.inputs.language


def view(inputs: Inputs, frame: pd.DataFrame, changed: Changes | None) -> View:
    """What to show of the report's rows and of what changed."""
    language = inputs.language
    rated = int(frame["rating"].notna().sum())
    categories = charts.by_category(frame, text(language, "no_category"), text(language, "other"))
    return View(
        inputs=inputs,
        first_line=inputs.first_line,
        places=_places(frame, TOP_SHOWN),
        mean_rating=float(frame["rating"].mean()) if rated else None,
        rated=rated,
        shared=int((frame["queries"].str.count('"rank":') > 1).sum()),
        new=None if changed is None else _listed(changed.new, CHANGES_SHOWN),
        gone=None if changed is None else _listed(changed.gone, CHANGES_SHOWN),
        moved=None if changed is None else _listed(changed.moved, CHANGES_SHOWN),
        changed=changed is not None and changed.count > 0,
        news=None if inputs.news is None else _news(inputs.news),
        news_places=0 if inputs.news is None else int(inputs.news["feature_id"].nunique()),
        by_query=charts.bars(charts.by_query(frame)),
        by_category=charts.bars(categories),
        by_rating=charts.bars(charts.by_rating(frame)),
        map=charts.world_map(frame),
        located=int((frame["latitude"].notna() & frame["longitude"].notna()).sum()),
    )


def _places(frame: pd.DataFrame, limit: int) -> Listed:
    listed = _listed(frame, limit)
    return Listed([{**row, "queries": json.loads(row["queries"])} for row in listed.rows], listed.total)


def _news(news: pd.DataFrame) -> Listed:
    """The first items about each place, so that one place does not fill the page."""
    listed = _listed(news.groupby("feature_id", sort=False).head(NEWS_SHOWN_PER_PLACE), NEWS_SHOWN)
    return Listed(listed.rows, len(news))


def _listed(frame: pd.DataFrame, limit: int) -> Listed:
    """The first rows as plain values, missing ones as None."""
    head = frame.head(limit).astype(object)
    rows = head.where(head.notna(), None).to_dict("records")
    return Listed([{str(name): value for name, value in row.items()} for row in rows], len(frame))
