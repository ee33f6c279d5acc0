"""The settings made into what the engine works with: store, source, report location, alerts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from collection_pipeline.datasets import DATASETS
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.declarations import DeclarationError
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.settings import SERPBASE_URL, Settings, SettingsError, variables
from collection_pipeline.sources.contract import EMULATOR

if TYPE_CHECKING:
    from upath import UPath

    from collection_pipeline.engine.store import Store, Transition
    from collection_pipeline.sources.contract import Source


def collection(graph: Graph, settings: Settings) -> Collection:
    """The collection as the settings describe it. Opens nothing yet.

    Raises `SettingsError` for a report location whose address cannot be used, `DeclarationError` for a job without a
    data set here: what consumes it would fail when it starts.
    """
    _check_address(settings.reports)
    unknown = [job.job_id for job in graph if job.job_id not in DATASETS]
    if unknown:
        raise DeclarationError(f"datasets.py: add the data set of {', '.join(unknown)} to DATASETS.")
    return Collection(
        graph=graph,
        datasets=DATASETS,
        timezone=settings.timezone,
        settings=settings,
        max_credits=settings.max_credits,
        source_label=source_label(settings),
        open_store=partial(open_store, settings),
        open_source=partial(open_source, settings),
        open_reports=partial(open_reports, settings),
        send=partial(send_alerts, settings),
        now=now,
    )


def now() -> datetime:
    """The instant, aware, in UTC."""
    return datetime.now(UTC)


def open_store(settings: Settings) -> Store:
    """The artifact store at COLLECTION_DATABASE_URL."""
    from collection_pipeline.engine.store import Store

    return Store.open(settings.database_url.get_secret_value())


def check_outlets(settings: Settings) -> None:
    """Raises `SettingsError` if reports or alerts cannot get out, as far as that shows without writing or sending.

    Of a bucket only the protocol is checked, since no more is known without asking it.
    """
    _check_address(settings.reports)
    _check_folder(settings.reports)
    if settings.alert_channels:
        from collection_pipeline.engine.runs.alerts import problem_of

        problem = problem_of(settings.alert_channels)
        if problem is not None:
            raise SettingsError(
                f"ALERT_URLS: {problem}. Expected: {variables()['ALERT_URLS']}; a comma within one is written %2C."
            )


def _check_folder(location: str) -> None:
    """Raises `SettingsError` for a folder on a disk that cannot be made, or not be written, by the look of it."""
    folder = _folder_at(location)
    if folder is None:
        return
    existing = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not existing.is_dir():
        raise _not_writable(location, f"{existing} is no folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise _not_writable(location, f"this user may not write to {existing}")


def _write_into_folder(location: str) -> None:
    """Make the folder and write a file that is gone again: only that tells. Raises `SettingsError`."""
    folder = _folder_at(location)
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=".written-to-", buffering=0) as file:
            file.write(b"\n")
    except OSError as error:
        raise _not_writable(location, f"it cannot be written to: {error.strerror or error}") from error


def _folder_at(location: str) -> Path | None:
    """The folder that reports go to; None for a bucket."""
    protocol, is_address, rest = location.partition("://")
    if is_address and protocol not in ("file", "local"):
        return None
    return Path(rest if is_address else location).absolute()


def _not_writable(location: str, problem: str) -> SettingsError:
    return SettingsError(f"COLLECTION_REPORTS={location}: {problem}. Expected: {variables()['COLLECTION_REPORTS']}.")


def _check_address(location: str) -> None:
    """Raises `SettingsError` if a bucket's protocol is unknown, its library is not installed, or a password shows."""
    protocol, is_address, rest = location.partition("://")
    if not is_address:
        return
    if "@" in rest.partition("/")[0]:  # it is shown in messages, metadata and reports
        raise SettingsError(
            "COLLECTION_REPORTS names a user or a password in its address. Leave them to the environment or the files"
            f" that the library of {protocol}:// reads."
        )
    from fsspec import get_filesystem_class

    try:
        get_filesystem_class(protocol)
    except (ValueError, ImportError) as error:  # the latter names the package to install
        raise SettingsError(
            f"COLLECTION_REPORTS: there is no way to write to {protocol}:// here: {error}. Install what is missing, or"
            " name a folder."
        ) from error


def open_reports(settings: Settings) -> UPath:
    """The report location at COLLECTION_REPORTS: a folder, or a bucket that universal-pathlib knows."""
    from upath import UPath

    return UPath(settings.reports)


def source_label(settings: Settings) -> str:
    """What people see in logs, metadata and report. The emulator never passes for the real service."""
    match settings.source_kind:
        case "emulator":
            return EMULATOR
        case "serpbase":
            return "SerpBase"
        case "gateway":
            return f"gateway {settings.serpbase_base_url}"


@contextmanager
def open_source(settings: Settings, moment: datetime) -> Iterator[Source]:
    """The source that the settings name. The embedded emulator shows the day of `moment`, which is in the run's zone.

    Raises `SettingsError` before anything can be bought for which there is no way out.
    """
    check_outlets(settings)
    _write_into_folder(settings.reports)
    from collection_pipeline.sources.emulator import EmulatorOptions, embedded, parse_faults
    from collection_pipeline.sources.serpbase import SerpBaseSource

    def client(base_url: str, key: str) -> Source:
        return SerpBaseSource(base_url, key, concurrency=settings.concurrency, rate_per_s=settings.rate_per_s)

    if settings.source_kind != "emulator":
        key = settings.serpbase_api_key
        yield client(settings.serpbase_base_url or SERPBASE_URL, key.get_secret_value() if key else "")
        return
    with embedded(EmulatorOptions(day=moment.date(), faults=parse_faults(settings.emulator_faults))) as emulator:
        yield client(emulator.base_url, emulator.api_key)


def send_alerts(settings: Settings, store: Store, transitions: Sequence[Transition]) -> None:
    """Alerts to the channels of ALERT_URLS, or to the log."""
    from collection_pipeline.engine.runs.alerts import send

    send(store, transitions, settings.alert_channels)
