"""What can be chosen about the emulator; what no public source says of SerpBase is our own choice and marked so."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from collection_pipeline.sources.emulator.faults import Faults


@dataclass(frozen=True, slots=True)
class EmulatorOptions:
    """How the emulator behaves.

    `day` is the day that the data speaks of (None: today, UTC): ratings, review counts, order, what is listed and the
    news change a little from one day to the next, and are the same for the same `seed` and `day`. `latency_ms` is the
    time that every answer takes. `credits` is the balance of the account (None: without end).

    Own choices, unknown of the real service: everything from `rows_per_page` down.
    """

    seed: int = 0
    day: date | None = None
    latency_ms: float = 0.0
    credits: int | None = None
    faults: Faults = field(default_factory=Faults)

    rows_per_page: int = 20
    """Places on a page. Organic results and news have ten, of which clients report."""
    last_page: int = 10
    """Pages after this one are empty."""
    charge_empty: bool = True
    """Whether a success that found nothing costs what any success costs."""
    charge_not_found: bool = False
    """Whether 1004 costs what a success costs."""
    refused_key_prefix: str = "invalid"
    """Keys that begin so are unauthorized; every other key that is not empty is taken."""
    unlisted_share: float = 0.02
    """Share of the places that search, but not detail, leaves out on any one day, so that days differ."""

    def today(self) -> date:
        """The day that the data speaks of."""
        return self.day or datetime.now(UTC).date()
