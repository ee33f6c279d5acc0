"""What the parts of the store share: the database they work on."""

from __future__ import annotations

from collection_pipeline.engine.store.database import Database


class StorePart:
    """One subject of the store; `Store` is all of them over one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
