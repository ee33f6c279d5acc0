"""Storing exchanges with a source as they end: one batch gathers while another commits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, TypeVar

from collection_pipeline.engine.store import StoreUnavailableError

Ended = TypeVar("Ended")

WRITE_BATCH = 64
"""Exchanges stored per transaction, and exchanges that may wait for it, at the most. A kill loses them."""

GATHER_S = 0.05
"""How long an exchange waits for company, at the most: a transaction takes as much processor time as storing twenty."""

PATIENCE_S = 60.0
"""How long exchanges wait in memory for a database that is away: as long as a server takes to restart."""

PAUSE_S = 0.5
"""Between two looks whether the database is back."""


class Recorder(Generic[Ended]):
    """The exchanges of one fetch on their way to `record`, which stores a batch or raises.

    What has arrived was paid for: it is stored also when the fetch breaks off. While the database is away it waits, and
    whoever fetches waits in `put`. A commit whose outcome nobody was told is repeated: counted twice at worst.
    """

    def __init__(self, record: Callable[[Sequence[Ended]], None]) -> None:
        self._record = record
        self._arrived: asyncio.Queue[Ended | None] = asyncio.Queue(WRITE_BATCH)
        self._enough = asyncio.Event()
        self._batch: list[Ended] = []
        self._saving: Future[None] | None = None

    async def put(self, exchange: Ended) -> None:
        """Hand over an exchange that ended."""
        await self._arrived.put(exchange)
        if self._arrived.full():
            self._enough.set()

    async def close(self) -> None:
        """Say that nothing more comes."""
        await self._arrived.put(None)
        self._enough.set()

    async def run(self) -> None:
        """Store what comes until it is closed. Raises `StoreUnavailableError` when the database stays away."""
        with ThreadPoolExecutor(1, "recorder") as thread:
            try:
                while await self._gather():
                    self._saving = thread.submit(self._save, self._batch)
                    await asyncio.wrap_future(self._saving)
                    self._batch, self._saving = [], None
            except BaseException:
                self._save_rest()
                raise

    async def _gather(self) -> bool:
        """Take one exchange, and those that come soon after it; False when nothing more comes."""
        first = await self._arrived.get()
        if first is None:
            return False
        self._batch.append(first)
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_S):
                await self._enough.wait()
        self._enough.clear()
        while len(self._batch) < WRITE_BATCH and not self._arrived.empty():
            following = self._arrived.get_nowait()
            if following is None:
                self._arrived.put_nowait(None)
                break
            self._batch.append(following)
        return True

    def _save(self, batch: Sequence[Ended]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._record(batch)
            except StoreUnavailableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE_S)
            else:
                return

    def _save_rest(self) -> None:
        """The fetch broke off: store what is here, unless storing is what failed."""
        if self._saving is not None and not self._saving.cancel():
            if self._saving.exception() is not None:
                return
            self._batch = []
        while not self._arrived.empty():
            exchange = self._arrived.get_nowait()
            if exchange is not None:
                self._batch.append(exchange)
        if self._batch:
            self._save(self._batch)
