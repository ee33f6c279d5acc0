"""What a fetch may spend: credits are reserved before a request is sent, so that a kill leaves no charge unnoted.

Whatever an attempt leaves reserved, nobody saw the answers of: those credits count as possibly billed.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress

from collection_pipeline.engine.jobs.recording import PATIENCE_S, PAUSE_S
from collection_pipeline.engine.store import Attempt, LostClaimError, Store, StoreUnavailableError
from collection_pipeline.sources.contract import ApiRequest, BudgetExhaustedError, Exchange

UNLIMITED_BLOCK = 32
"""Credits reserved at a time without a budget. A block is used again and again, so that few are ever needed; and small
ones keep the doubt after a kill close to what was in flight or waited to be stored: at most one block more."""

BUDGET_BLOCK = 128
"""Credits reserved at a time with a budget: one short transaction per 64 two-credit calls."""

BUDGET_SHARE = 16
"""But no more than this part of the budget, or a kill would leave much of it in doubt."""


class Allowance:
    """The credits of one fetch. With a budget, no two processes spend the same credit of it.

    `settle` and `stop` are called by the thread that stores what ended, and `settle` alone counts what may be used
    again; everything else by the thread that fetches.
    """

    def __init__(self, store: Store, attempt: Attempt, max_credits: int | None) -> None:
        self._store, self._attempt, self._max_credits = store, attempt, max_credits
        self._sent: Counter[str] = Counter()
        self._reserved = 0
        self._used = 0
        self._used_again = 0
        self._unreachable = False
        self._stopped_by: LostClaimError | None = None
        self._reserving = asyncio.Lock()

    @property
    def is_unlimited(self) -> bool:
        """There is no budget: credits stay reserved when a call ends, and the next call uses them again."""
        return self._max_credits is None

    async def admit(self, request: ApiRequest) -> None:
        """Wait until the request may be sent. Raises `BudgetExhaustedError` if it must not be, and `LostClaimError` if
        the attempt no longer holds its job."""
        if self._stopped_by is not None:
            raise self._stopped_by
        if self._free < request.credits:
            async with self._reserving:  # one reservation serves many that wait for it
                if self._free < request.credits and not await self._reserve_for(request):
                    raise BudgetExhaustedError(f"the budget of {self._max_credits} credits a run is used up")
        self._used += request.credits
        self._sent[request.fingerprint] += 1

    def used_by(self, call: Exchange) -> int:
        """How many reserved credits a call that ended used up: none if it was refused and never sent."""
        fingerprint = call.request.fingerprint
        if fingerprint not in self._sent:
            return 0
        self._sent[fingerprint] -= 1
        if not self._sent[fingerprint]:
            del self._sent[fingerprint]
        return call.request.credits

    def settle(self, used: int) -> None:
        """Calls that used so many credits are stored."""
        if self.is_unlimited:
            self._used_again += used
        self._unreachable = False

    def stop(self, reason: LostClaimError) -> None:
        """Admit nothing more."""
        self._stopped_by = reason

    def close(self) -> None:
        """Give back what was reserved and not needed, if the database is there; it is in doubt otherwise."""
        if self._free > 0:
            with suppress(StoreUnavailableError):
                self._store.release(self._attempt, self._free)

    @property
    def _free(self) -> int:
        return self._reserved + self._used_again - self._used

    async def _reserve_for(self, request: ApiRequest) -> bool:
        if self._max_credits is not None:
            block = min(BUDGET_BLOCK, self._max_credits // BUDGET_SHARE)
            return (block > request.credits and await self._reserve(block)) or await self._reserve(
                request.credits - self._free
            )
        # While the database is away for moments, a kill would leave the books wrong: no reason to stop fetching.
        if not self._unreachable:
            try:
                await self._reserve(max(UNLIMITED_BLOCK, request.credits - self._free))
            except StoreUnavailableError:
                self._unreachable = True
        return True

    async def _reserve(self, amount: int) -> bool:
        """Reserve in a thread: a database that is locked or away holds up nothing that is in flight."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                granted = await asyncio.to_thread(self._store.reserve, self._attempt, amount, self._max_credits)
            except StoreUnavailableError:
                if self.is_unlimited or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(PAUSE_S)
            else:
                self._reserved += amount if granted else 0
                return granted
