"""The report's table, and what changed since the table of an earlier run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from collection_pipeline.datasets import DAILY_REPORT
from collection_pipeline.engine.datasets import DTYPES
from collection_pipeline.steps.ranking import ordered


@dataclass(frozen=True)
class Changes:
    """Rows of the table (new, moved) and of the previous one (gone), each in its order. A move is one of best_rank."""

    new: pd.DataFrame
    gone: pd.DataFrame
    moved: pd.DataFrame

    @property
    def count(self) -> int:
        return len(self.new) + len(self.gone) + len(self.moved)


def table(
    details: pd.DataFrame, news: pd.DataFrame | None, previous: pd.DataFrame | None, as_of: datetime, news_top: int
) -> pd.DataFrame:
    """The `DAILY_REPORT` rows: one per place, the top places first."""
    rows = ordered(details)
    rows = rows.assign(position=pd.Series(range(1, len(rows) + 1), index=rows.index), data_as_of=as_of)
    rows["previous_rank"] = _previous_rank(rows, previous)
    rows["change"] = _change(rows, previous)
    rows["news_count"] = _news_count(rows, news, news_top)
    return rows[[column.name for column in DAILY_REPORT.columns]].astype(
        {column.name: DTYPES[column.kind] for column in DAILY_REPORT.columns}
    )


def changes(rows: pd.DataFrame, previous: pd.DataFrame | None) -> Changes | None:
    """What differs between the table and the previous one; None without one."""
    if previous is None:
        return None
    return Changes(
        new=rows[rows["change"] == "new"],
        gone=previous[~previous["feature_id"].isin(rows["feature_id"])].sort_values("position"),
        moved=rows[rows["change"].isin(["up", "down"])],
    )


def _previous_rank(rows: pd.DataFrame, previous: pd.DataFrame | None) -> pd.Series[int]:
    if previous is None:
        return pd.Series(pd.NA, index=rows.index, dtype="Int64")
    ranks = previous.set_index("feature_id")["best_rank"]
    return rows["feature_id"].map(ranks).astype("Int64")


def _change(rows: pd.DataFrame, previous: pd.DataFrame | None) -> pd.Series[str]:
    change = pd.Series(None, index=rows.index, dtype="str")
    if previous is None:
        return change
    moved = (rows["best_rank"] - rows["previous_rank"]).fillna(0)
    change[:] = "same"
    change[rows["previous_rank"].isna()] = "new"
    change[moved < 0] = "up"
    change[moved > 0] = "down"
    return change


def _news_count(rows: pd.DataFrame, news: pd.DataFrame | None, top: int) -> pd.Series[int]:
    if news is None:
        return pd.Series(pd.NA, index=rows.index, dtype="Int64")
    counts = rows["feature_id"].map(news["feature_id"].value_counts()).astype("Int64")
    return counts.fillna(0).where(rows["position"] <= top)
