"""A store on each database, and a world around it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collection_pipeline.engine.store import Store
from collection_pipeline_tests.store.world import World


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with Store.open(database_url) as store:
        yield store


@pytest.fixture
def world(store: Store) -> World:
    return World(store)
