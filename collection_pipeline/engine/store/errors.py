"""What can go wrong in the store, in words for the person who meets it."""

from __future__ import annotations

from datetime import datetime

from collection_pipeline.engine.holders import Holder


class StoreError(Exception):
    """Base of everything the store raises on purpose."""


class StoreUrlError(StoreError, ValueError):
    """The database URL is not one the store can use; the message shows what is."""


class StoreUnavailableError(StoreError):
    """The database cannot be used right now (gone, locked, read-only, full). Nothing half-made was kept."""

    retryable = True


class SchemaTooNewError(StoreError):
    """The database was written by a newer version of this program."""


class UnknownRunError(StoreError, LookupError):
    """No run of that name was ever opened."""


class UnreadableRunError(StoreError):
    """What a run was stored with is nothing that can be read here: its time zone, or its graph. It is kept as it is."""


class UnknownJobError(StoreError, LookupError):
    """The run has no such job."""


class UnknownArtifactError(StoreError, LookupError):
    """There is no such version, or it was retracted or pruned."""


class HeldError(StoreError):
    """The job is being worked on by somebody else; `holder` and `since` say who."""

    def __init__(self, run_id: str, job_id: str, holder: Holder, since: datetime) -> None:
        super().__init__(
            f"{job_id} of run {run_id} is already running: {holder} holds it since {since:%Y-%m-%d %H:%M:%S} UTC."
            f" Wait for it, or end that Dagster run. See: collect status {run_id}"
        )
        self.run_id, self.job_id, self.holder, self.since = run_id, job_id, holder, since


class MadeMeanwhileError(StoreError):
    """The Dagster run `dagster_run_id` made the job of the same inputs after this attempt at it was asked for.

    Nothing was written.
    """

    def __init__(self, run_id: str, job_id: str, dagster_run_id: str) -> None:
        super().__init__(f"{job_id} of run {run_id} was made meanwhile, by Dagster run {dagster_run_id}.")
        self.dagster_run_id = dagster_run_id


class LostClaimError(StoreError):
    """The attempt no longer holds its job, so it may not change it. Nothing was published."""

    kind = "lost_claim"


class RetractedInputError(StoreError):
    """An input of the attempt was withdrawn while it ran. Nothing was published."""


class FrameError(StoreError, ValueError):
    """A data frame does not fit its data set; the message names the column. Nothing was published."""


class DatasetError(StoreError, ValueError):
    """A data set's description cannot be stored: a bad name, or a column that changed its kind."""
