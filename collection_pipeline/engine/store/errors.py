"""What can go wrong in the store, in words for the person who meets it."""

from __future__ import annotations


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


class UnknownJobError(StoreError, LookupError):
    """The run has no such job."""


class UnknownArtifactError(StoreError, LookupError):
    """There is no such version, or it was retracted or pruned."""


class LostClaimError(StoreError):
    """The attempt no longer holds its job, so it may not change it. Nothing was published."""


class RetractedInputError(StoreError):
    """An input of the attempt was withdrawn while it ran. Nothing was published."""


class FrameError(StoreError, ValueError):
    """A data frame does not fit its data set; the message names the column. Nothing was published."""


class DatasetError(StoreError, ValueError):
    """A data set's description cannot be stored: a bad name, or a column that changed its kind."""
