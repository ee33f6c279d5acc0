"""Word of calls that are tried again: until they end, nothing else shows that the source is down."""

from __future__ import annotations

import logging
import time

from collection_pipeline.engine.store import Attempt
from collection_pipeline.engine.visible import visible
from collection_pipeline.sources.contract import Exchange

EVERY_S = 30.0
"""Between two words about the calls of one fetch."""

log = logging.getLogger("collection_pipeline.calls")


class TryingAgain:
    """Logs, now and then, what a call of this attempt failed with more than once: once is nothing unusual."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._next = 0.0

    def see(self, call: Exchange) -> None:
        """Look at a try that was not the last one of its call."""
        now = time.monotonic()
        if call.number > 1 and now >= self._next:
            self._next = now + EVERY_S
            job = f"{self._attempt.job_id} of {self._attempt.run_id}"
            log.warning("%s: a call failed %d times and is tried again: %s", job, call.number, visible(str(call.error)))
