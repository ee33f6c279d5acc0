"""A clock that only moves when somebody sleeps, or not even then."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)


class FakeClock:
    """Sleeping takes no time and is written down in `slept`."""

    def __init__(self, *, stands_still: bool = False) -> None:
        self._stands_still = stands_still
        self.slept: list[float] = []
        self._seconds = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if not self._stands_still:
            self._seconds += seconds
        await asyncio.sleep(0)
