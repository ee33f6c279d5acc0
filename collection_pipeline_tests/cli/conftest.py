"""Desks: an empty one for each test, and one with a whole run that tests look at, or copy and go on from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from collection_pipeline_tests.cli.desk import Desk, Done, new_desk


@dataclass(frozen=True)
class Collected:
    """A desk at which 2026-11-29 was collected from the emulator without a fault, and how that command ended.

    `days` are those of its beginning and its end, by the clock and in the zone of the run.
    """

    desk: Desk
    done: Done
    days: tuple[date, date]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path / "desk")


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    desk = new_desk(tmp_path_factory.mktemp("collected") / "desk")
    began = datetime.now(UTC).date()
    done = desk.collect("run", "2026-11-29")
    return Collected(desk, done, (began, datetime.now(UTC).date()))
