"""One sensor tick: look at the open runs, act on what the planner decides, and keep watching for a few seconds.

Dagster's daemon starts a tick every five seconds at the most often. A tick that keeps looking while a run is open, or
about to be opened by a Dagster run, closes that gap: what becomes due is requested within a quarter of a second.
Otherwise a tick is two indexed queries.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.runs.propagation import Look, propagate

WATCH_S = 4.0
"""How long a tick looks at open runs; shorter than the daemon's five seconds, so that ticks never pile up."""

LOOK_EVERY_S = 0.25
"""Between two looks, and four times as long as a look takes: many open runs cost a fifth of a core at the most."""


def watch(instance: dg.DagsterInstance, collection: Collection) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Propagate until something has to be requested, nothing is open, or the tick has looked for `WATCH_S` seconds."""
    give_up = time.monotonic() + WATCH_S
    seen: dict[str, Look] = {}
    while True:
        began = time.monotonic()
        tick = propagate(instance, collection, seen)
        if tick.requests:
            yield from tick.requests
            return
        if not tick.waiting or time.monotonic() >= give_up:
            yield dg.SkipReason(tick.text)
            return
        time.sleep(max(LOOK_EVERY_S, 4 * (time.monotonic() - began)))
