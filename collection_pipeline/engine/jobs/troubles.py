"""Word of calls that do not end: until one does, nothing else shows that the source is down, or hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sized
from contextlib import asynccontextmanager

from collection_pipeline.engine.counting import counted
from collection_pipeline.engine.logs import log_of
from collection_pipeline.engine.store import Attempt
from collection_pipeline.engine.visible import visible
from collection_pipeline.sources.contract import Exchange

EVERY_S = 30.0
"""Between two words about the calls of one fetch, and between two looks whether any came back since."""

log = log_of("calls")


class Troubles:
    """Logs, now and then, what a call of this attempt failed with more than once (once is nothing unusual), and that no
    call comes back. `under_way` are the calls that were begun, if only to wait for their turn, and have not ended."""

    def __init__(self, attempt: Attempt, under_way: Sized) -> None:
        self._job = f"{attempt.job_id} of {attempt.run_id}"
        self._under_way = under_way
        self._next = 0.0
        self._waits_since: float | None = time.monotonic()

    def see(self, call: Exchange) -> None:
        """Look at a call that came back: it ended, or will be tried again. Then it is dealt with, until `wait`."""
        self._waits_since, now = None, time.monotonic()
        if not call.final and call.number > 1 and now >= self._next:
            self._next = now + EVERY_S
            error = visible(str(call.error))
            log.warning("%s: a call failed %d times and is tried again: %s", self._job, call.number, error)

    def wait(self) -> None:
        """From now on, the source is waited for."""
        self._waits_since = time.monotonic()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Have an eye on the calls until the block ends; each that comes back is to be shown to `see`."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            if self._waits_since is None:
                continue
            quiet_s = time.monotonic() - self._waits_since
            if quiet_s >= EVERY_S:
                calls = counted(len(self._under_way), "call")
                log.warning("%s: nothing came back for %d s; %s begun", self._job, quiet_s, calls)
