"""The command group: what every command shares, above all how an error becomes words and an exit code."""

from __future__ import annotations

import errno
import signal
from pathlib import Path
from traceback import extract_tb, walk_tb
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from collection_pipeline.cli.streams import ResultLostError
from collection_pipeline.cli.terminal import note
from collection_pipeline.engine.visible import shortened

if TYPE_CHECKING:
    from sqlalchemy.exc import OperationalError

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
        except (click.ClickException, click.exceptions.Exit, click.Abort, ResultLostError):
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
    if isinstance(error, OperationalError):
        return Failure(_database_words(error))
    if isinstance(error, SettingsError | QueriesError | DeclarationError | RunIdError | StoreError):
        return Refusal(str(error))
    place = _place_in_the_project(error)
    if place is not None:
        return Refusal(f"{place}: {type(error).__name__}: {error}")
    return _file_words(error) if isinstance(error, OSError) else None


def _database_words(error: OperationalError) -> str:
    """Of a database that cannot be used: which it is, as far as the way to the error shows, and what to type."""
    packages = {frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in walk_tb(error.__traceback__)}
    which = "Dagster's storage in DAGSTER_HOME" if "dagster" in packages else "A database"
    no_room = any(sign in str(error.orig).lower() for sign in ("disk i/o", "disk is full", "no space left"))
    way_out = "Make room on its disk, then" if no_room else "Once it is there again,"
    return f"{which} cannot be used: {error.orig}. {way_out} type the same command again."


def _file_words(error: OSError) -> Refusal:
    """Of a file that cannot be used. A name that no file can have is wrong configuration."""
    told = Refusal if error.errno == errno.ENAMETOOLONG else Failure
    where = "" if error.filename is None else f"{shortened(str(error.filename))} cannot be used: "
    return told(f"{where}{error.strerror or error}.")


def _place_in_the_project(error: Exception) -> str | None:
    """File and line of an error that arose while the files which people edit were loaded, and not while they ran.

    The words of Python and Dagster say what is wrong with the line; how they came to it is no help.
    """
    package = Path(__file__).parent.parent
    if isinstance(error, SyntaxError) and error.filename is not None:
        places = [(error.filename, error.lineno)]
    else:
        frames = extract_tb(error.__traceback__)
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
