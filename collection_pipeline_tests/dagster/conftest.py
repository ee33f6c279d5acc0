"""The small collection on a real Dagster instance, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from collection_pipeline_tests.dagster.in_process import InProcess, in_process


@pytest.fixture
def world(tmp_path: Path) -> Iterator[InProcess]:
    with in_process(tmp_path) as world:
        yield world
