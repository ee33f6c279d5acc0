"""Everything a report is made of, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cached_property

import pandas as pd

from collection_pipeline.engine.checks import CallCounts
from collection_pipeline.engine.planning.state import Status
from collection_pipeline.steps import news as news_step
from collection_pipeline.texts import Language, first_line, text


@dataclass(frozen=True, slots=True)
class Provenance:
    """One artifact that the report stands on, directly or further up, and what it cost.

    `degraded`: it stands in for this run's own or was itself built on older data. `request_ids` is a sample of the
    `request_count` API calls its rows were read from, at `source`.
    """

    job_id: str
    run_id: str
    version: int
    as_of: datetime
    degraded: bool
    rows: int
    credits: int
    request_ids: Sequence[str] = ()
    request_count: int = 0
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything a report is made of.

    `moment` is the run's, `as_of` the oldest among its inputs, `collected_at` when the last of what they were made from
    was collected (all aware); `emulated` puts a banner on every page.
    `details` and `news` hold rows of `detail_pages` and `news_mentions`; without news, `news_status` says how that
    job stands.
    `previous` holds the rows of the earlier `daily_report` of `previous_run_id`. `coverage` is that of the details;
    None: not known.
    """

    run_id: str
    moment: datetime
    as_of: datetime
    collected_at: datetime
    timezone: tzinfo
    language: Language
    source: str
    emulated: bool
    details: pd.DataFrame
    news: pd.DataFrame | None = None
    news_status: Status | None = None
    news_top: int = news_step.TOP
    previous: pd.DataFrame | None = None
    previous_run_id: str = ""
    coverage: CallCounts | None = None
    provenance: Sequence[Provenance] = ()

    @property
    def first_line(self) -> str:
        """What the data speaks of, in both languages; see `texts.as_of_line`."""
        is_older = bool(self.degraded)
        return first_line(self.language, self.as_of, self.moment, self.collected_at, self.timezone, is_older=is_older)

    @property
    def details_of_run(self) -> str:
        """The run whose detail pages these are."""
        return next((item.run_id for item in self.provenance if item.job_id == "detail_pages"), self.run_id)

    @cached_property
    def compared(self) -> pd.DataFrame | None:
        """The table to compare with: not the previous one, if it shows the same answers at the same ranks.

        A report that falls back on what the previous one stood on would find that nothing has changed, which it does
        not know.
        """
        if self.previous is None or _shown(self.previous) == _shown(self.details):
            return None
        return self.previous

    @property
    def news_missing(self) -> str:
        """Why there is no news, as a sentence for the reader."""
        return text(self.language, f"news_{self.news_status or 'pending'}")

    @property
    def degraded(self) -> Sequence[Provenance]:
        """The inputs that are older than the run."""
        return [item for item in self.provenance if item.degraded]


def _shown(rows: pd.DataFrame) -> set[tuple[str, str, int]]:
    return set(zip(rows["feature_id"], rows["request_id"], rows["best_rank"], strict=True))
