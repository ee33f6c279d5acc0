"""The command group: what every command shares, above all how an error becomes words and an exit code."""

from __future__ import annotations

import signal
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import click

from collection_pipeline.cli.terminal import note

FAILED = 1
"""Something failed or is blocked."""

WRONG_USE = 2
"""Wrong use or configuration; nothing was written."""


class Refusal(click.ClickException):
    """Wrong use or configuration, in words that say what would be right. Nothing was written."""

    exit_code = WRONG_USE

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - click's signature
        note(self.message)


class Failure(Refusal):
    """The command could not do what it was asked to; the words say what was kept and what to type."""

    exit_code = FAILED


class Stopped(KeyboardInterrupt):
    """A signal stopped the command; the words say what was kept and how to go on."""

    def __init__(self, stopped_by: int = signal.SIGINT, message: str = "Stopped.") -> None:
        super().__init__(message)
        self.exit_code = 128 + stopped_by


def stop(number: int, _frame: FrameType | None) -> None:
    """Signal handler: what Ctrl-C does, by the exit code of this signal."""
    raise Stopped(number)


class CollectGroup(click.Group):
    """Turns the errors that people can do something about into their words; others stay tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            stopped = error if isinstance(error, Stopped) else Stopped()
            note(str(stopped))
            ctx.exit(stopped.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            known = _in_words(error)
            if known is None:
                raise
            raise known from error


def _in_words(error: Exception) -> click.ClickException | None:
    from sqlalchemy.exc import OperationalError

    from collection_pipeline.engine.declarations import DeclarationError
    from collection_pipeline.engine.run_ids import RunIdError
    from collection_pipeline.engine.store import StoreError, StoreUnavailableError
    from collection_pipeline.queries import QueriesError
    from collection_pipeline.settings import SettingsError

    if isinstance(error, StoreUnavailableError):
        return Failure(str(error))
    if isinstance(error, OperationalError):  # the store has words of its own, so this is Dagster's history
        return Failure(
            f"Dagster's storage in DAGSTER_HOME cannot be used: {error.orig}. The collection is kept as it is."
        )
    if isinstance(error, SettingsError | QueriesError | DeclarationError | RunIdError | StoreError):
        return Refusal(str(error))
    place = _place_in_the_project(error)
    return None if place is None else Refusal(f"{place}: {type(error).__name__}: {error}")


def _place_in_the_project(error: Exception) -> str | None:
    """File and line of an error that arose while the files which people edit were loaded, and not while they ran.

    The words of Python and Dagster say what is wrong with the line; how they came to it is no help.
    """
    package = Path(__file__).parent.parent
    if isinstance(error, SyntaxError) and error.filename is not None:
        places = [(error.filename, error.lineno)]
    else:
        frames = traceback.extract_tb(error.__traceback__)
        places = [(frame.filename, frame.lineno) for frame in frames if frame.name == "<module>"]
    for file, line in reversed(places):
        path = Path(file)
        if path.is_relative_to(package) and path.relative_to(package).parts[0] not in ("engine", "cli"):
            return f"{path.relative_to(package)}:{line}"
    return None


@click.group(cls=CollectGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="collection-pipeline", message="%(prog)s %(version)s")
def collect() -> None:
    """Collection jobs in the order of their data: search, the detail pages of what it found, the report.

    RUN_ID names one collection: 2026-11-29, or 2026-11-29T0600 for several a day, with .2, .3 for a further collection
    of the same moment. Results go to stdout, progress and messages to stderr.

    Exit codes: 0 all well as the policies allow, also when degraded or skipped; 1 something failed or is blocked; 2
    wrong use or configuration, nothing was written.
    """
