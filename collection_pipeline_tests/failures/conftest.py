"""A desk on each database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import pytest

from collection_pipeline.sources.emulator import EmulatorOptions, embedded, parse_faults
from collection_pipeline_tests.failures.desk import Desk

DAY = date(2026, 11, 29)
FEW = '[[query]]\nq = "airports in Iceland"\ngl = "is"\n'
"""One page: twenty places."""

NewDesk = Callable[..., Desk]


@pytest.fixture
def new_desk(tmp_path: Path) -> Iterator[NewDesk]:
    """Makes a desk at a database, with queries, and faults and options of its emulator."""
    with ExitStack() as stack:

        def make(database_url: str, queries: str = FEW, faults: str = "", **options: object) -> Desk:
            (tmp_path / "queries.toml").write_text(queries, "utf-8")
            chosen = EmulatorOptions(day=DAY, faults=parse_faults(faults), **options)  # type: ignore[arg-type]
            running = stack.enter_context(embedded(chosen))
            return Desk(tmp_path, database_url, running.base_url, running.account)

        yield make


@pytest.fixture
def desk(new_desk: NewDesk, database_url: str) -> Desk:
    """Twenty places, no faults, on each database."""
    return new_desk(database_url)
