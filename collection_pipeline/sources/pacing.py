"""When the next attempt may be sent: rate limit, back-off and what `Retry-After` asks for."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

LONGEST_RETRY_AFTER_S = 60.0
"""A server that asks for a longer pause is asked again after this one: a job must not sleep for hours on one header."""


class Clock(Protocol):
    """Time as the client sees it; tests bring their own and wait for nothing."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The real one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Pacer:
    """Hands out turns, at most `rate_per_s` of them a second, evenly spaced; None is no limit.

    A turn is reserved before it is waited for, so a late wake-up loses no throughput. All requests of one source share
    it: when the server asks for a pause, everybody pauses.
    """

    def __init__(self, rate_per_s: float | None, clock: Clock) -> None:
        self._gap_s = 1 / rate_per_s if rate_per_s else 0.0
        self._clock = clock
        self._next_turn = 0.0

    async def turn(self) -> None:
        """Wait for the next free turn."""
        now = self._clock.monotonic()
        turn = max(now, self._next_turn)
        self._next_turn = turn + self._gap_s
        if turn > now:
            await self._clock.sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Give no turn before `seconds` from now."""
        self._next_turn = max(self._next_turn, self._clock.monotonic() + seconds)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often a request is tried, and how long to wait in between.

    The wait doubles from `first_s` up to `longest_s`; a random part of up to one half is taken off, so that requests
    that failed together do not come back together. `seed` makes the waits repeatable.
    """

    attempts: int = 5
    first_s: float = 0.5
    longest_s: float = 30.0
    seed: int | None = None
    _random: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_random", random.Random(self.seed))  # noqa: S311 - jitter is no secret

    def wait_s(self, attempt: int, retry_after_s: float | None = None) -> float:
        """Seconds to wait after attempt number `attempt` (from 1) failed; never less than the server asked for."""
        ceiling = min(self.longest_s, self.first_s * 2.0 ** min(attempt - 1, 60))
        return max(ceiling * (1 - self._random.random() / 2), retry_after_s or 0.0)


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` header (seconds or HTTP date, RFC 9110) asks for, capped; None if unusable."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)
