"""The artifact store: runs, jobs, artifacts and paid calls in one database, SQLite or PostgreSQL.

`Store` is the way in; each of its parts is a module of its own. Data frame libraries are loaded when frames are read or
written, not before.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from collection_pipeline.engine.holders import Holder
from collection_pipeline.engine.store.attempts import Attempt, Attempts, RunningJob, StartCounts
from collection_pipeline.engine.store.database import Database
from collection_pipeline.engine.store.episodes import Episode, Episodes, Transition
from collection_pipeline.engine.store.errors import (
    DatasetError,
    FrameError,
    HeldError,
    LostClaimError,
    MadeMeanwhileError,
    RetractedInputError,
    SchemaTooNewError,
    StoreError,
    StoreUnavailableError,
    StoreUrlError,
    UnknownArtifactError,
    UnknownJobError,
    UnknownRunError,
    UnreadableRunError,
)
from collection_pipeline.engine.store.ledger import Credits, Ledger
from collection_pipeline.engine.store.lineage import Ancestor, Lineage
from collection_pipeline.engine.store.migrations import prepare
from collection_pipeline.engine.store.publishing import Manifest, Published, Publishing
from collection_pipeline.engine.store.reading import Reading
from collection_pipeline.engine.store.retention import Removal, Retention
from collection_pipeline.engine.store.retraction import Retraction, Retractions
from collection_pipeline.engine.store.runs import OpenRun, Runs
from collection_pipeline.engine.store.staging import Staged
from collection_pipeline.engine.store.states import RunState, Shown, States
from collection_pipeline.engine.store.views import ArtifactView, InputView, JobView, RunView, Views

__all__ = [
    "Ancestor",
    "ArtifactView",
    "Attempt",
    "Credits",
    "DatasetError",
    "Episode",
    "FrameError",
    "HeldError",
    "Holder",
    "InputView",
    "JobView",
    "LostClaimError",
    "MadeMeanwhileError",
    "Manifest",
    "OpenRun",
    "Published",
    "Removal",
    "RetractedInputError",
    "Retraction",
    "RunState",
    "RunView",
    "RunningJob",
    "SchemaTooNewError",
    "Shown",
    "Staged",
    "StartCounts",
    "Store",
    "StoreError",
    "StoreUnavailableError",
    "StoreUrlError",
    "Transition",
    "UnknownArtifactError",
    "UnknownJobError",
    "UnknownRunError",
    "UnreadableRunError",
]


class Store(
    Runs,
    States,
    Views,
    Attempts,
    Publishing,
    Reading,
    Lineage,
    Ledger,
    Retractions,
    Retention,
    Episodes,
):
    """Everything that is kept, in one database. May be shared by threads; each process opens its own."""

    @classmethod
    def open(cls, url: str) -> Self:
        """The store at `sqlite:///path` or `postgresql://…`, made or migrated if need be; cheap if not.

        Raises `StoreUrlError`, `StoreUnavailableError` and `SchemaTooNewError`, none of which shows a password.
        """
        database = Database(url)
        try:
            prepare(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @property
    def url(self) -> str:
        """Where it is, without the password."""
        return self.database.shown

    def close(self) -> None:
        """Give the connections back."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.url!r})"
