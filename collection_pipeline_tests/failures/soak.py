"""Many trials of killing a process that fetches 1,000 details: `python -m collection_pipeline_tests.failures.soak`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from collection_pipeline.sources.emulator import EmulatorOptions, embedded
from collection_pipeline_tests.failures.conftest import DAY
from collection_pipeline_tests.failures.desk import Desk
from collection_pipeline_tests.failures.trials import (
    CONCURRENCY,
    LATENCY_MS,
    PRICE,
    THOUSAND_PLACES,
    Found,
    run_trial,
)
from deploy.postgres.server import PostgresServer

DATABASES = ("sqlite", "postgresql")


def main() -> None:
    """Run the trials on each database, and print what they came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="on each database")
    parser.add_argument("--kills", type=int, default=3, help="in each trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--database", choices=DATABASES, action="append", help="default: both in turn")
    options = parser.parse_args()
    for database in options.database or DATABASES:
        random = Random(f"{options.seed} {database}")
        with TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o755)  # root's PostgreSQL server runs as somebody else
            with _urls(database, folder) as new_url:
                found = [
                    _trial(folder / str(number), new_url, random, options.kills) for number in range(options.trials)
                ]
        _report(database, found)


@contextmanager
def _urls(database: str, folder: Path) -> Iterator[Callable[[Path], AbstractContextManager[str]]]:
    """How to come by an empty database for a trial in a folder."""
    if database == "sqlite":
        yield lambda here: nullcontext(f"sqlite:///{here / 'collection.db'}")
        return
    server = PostgresServer(folder / "server")
    with server.running():
        yield lambda _here: server.new_database()


def _trial(folder: Path, new_url: Callable[[Path], AbstractContextManager[str]], random: Random, kills: int) -> Found:
    folder.mkdir()
    (folder / "queries.toml").write_text(THOUSAND_PLACES, "utf-8")
    options = EmulatorOptions(day=DAY, latency_ms=LATENCY_MS)
    with new_url(folder) as url, embedded(options) as emulator:
        return run_trial(Desk(folder, url, emulator.base_url, emulator.account), random, kills)


def _report(database: str, found: list[Found]) -> None:
    kills = sum(each.kills for each in found)
    lost = sum(each.lost for each in found)
    print(  # noqa: T201 - a script's own words
        f"{database}: {len(found)} trials, {kills} kills, {CONCURRENCY} requests in flight;"
        f" answers stored and bought again: {sum(each.stored_twice for each in found)};"
        f" answers lost in flight: {lost}, {lost / kills:.1f} a kill;"
        f" credits possibly billed: {sum(each.possibly_billed for each in found) / kills:.1f} a kill;"
        f" trials that show less than was lost: {sum(each.possibly_billed < PRICE * each.lost for each in found)};"
        f" rows missing: {sum(each.places - each.rows for each in found)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
