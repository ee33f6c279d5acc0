"""The small collection on a real Dagster instance, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from collection_pipeline_tests.dagster.in_process import InProcess, in_process
from collection_pipeline_tests.dagster.small_collection import assets


@pytest.fixture
def world(tmp_path: Path) -> Iterator[InProcess]:
    with in_process(tmp_path) as world:
        yield world


@pytest.fixture
def pinned(world: InProcess) -> InProcess:
    """The same, with a report that is pinned to what it read."""
    return world.changed(*assets(world.script, report_on_rerun="pin"))
