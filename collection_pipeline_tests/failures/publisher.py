"""A process that publishes and dies at a given point on the way."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sa
from upath import UPath

from collection_pipeline.engine.holders import Holder, this_process
from collection_pipeline.engine.jobs.files import publish_files
from collection_pipeline.engine.store import Attempt, Manifest, Published, Store
from collection_pipeline_tests.store.world import World, dataset_of, passes, places

RUN = "2026-11-29"
JOB = "details"
FILE_EVENTS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"}


class Points:
    """The points on the way to a published version: before each statement, commit, file operation and frame."""

    def __init__(self, die_at: int) -> None:
        self._die_at = die_at
        self._numbers = count(1)

    def passed(self, *_arguments: Any, **_named: Any) -> None:
        """One more; the last one for this process if it is the one chosen."""
        if next(self._numbers) == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, store: Store, folder: Path) -> None:
        """Count what the store says to its database, and what happens to files below the folder."""
        for event in ("before_cursor_execute", "commit"):
            sa.event.listen(store.database.engine, event, self.passed)

        def on_audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event in FILE_EVENTS and str(arguments[0]).startswith(str(folder)):
                self.passed()

        sys.addaudithook(on_audit)


def holder(name: str) -> Holder:
    """This very process."""
    return Holder(name, *this_process())


def publish(world: World, attempt: Attempt, edition: str, reports: Path, points: Points) -> Published:
    """Two frames and a file, all of which say which edition they are."""

    def frames() -> Iterator[pd.DataFrame]:
        for part in ("a", "b"):
            points.passed()
            frame = places(f"{edition} {part}", edition)
            yield frame.assign(place_id=[f"{part}{number}" for number in range(len(frame))])

    def manifest(version: int) -> Manifest:
        files = publish_files(UPath(reports), RUN, JOB, version, {"report.txt": edition.encode()})
        return Manifest(source="test", files=files)

    return world.store.publish(
        attempt, dataset_of(JOB), frames(), lambda _staged: passes(), manifest=manifest, now=lambda: world.now
    )


def claim_and_publish(url: str, reports: Path, edition: str, die_at: int) -> None:
    """What the child does."""
    with Store.open(url) as store:
        world = World(store)
        attempt = world.claim(RUN, JOB, holder(edition))
        points = Points(die_at)
        points.watch(store, reports)
        publish(world, attempt, edition, reports, points)
        points.passed()
