"""The Dagster instance of DAGSTER_HOME, so that what the command line does shows up in Dagster's UI."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import dagster as dg
import yaml

from collection_pipeline.cli.group import Failure, Refusal

CONFIG = "dagster.yaml"

NEW_HOME = """\
# Written by `collect` for a new DAGSTER_HOME. No usage data leaves this machine, and the UI asks for no e-mail address.
telemetry:
  enabled: false
nux:
  enabled: false
# What the collection itself logs in a step is among the run's events in the UI.
python_logs:
  managed_python_loggers:
    - collection_pipeline
"""


NO_CAPTURE = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}
"""What is printed stays on the terminal: each step's capture starts two processes that end in tracebacks at Ctrl-C."""


@contextmanager
def open_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Open the instance in `home`, made if need be. The process then works in that folder.

    Relative paths in a dagster.yaml count from the folder that a process works in: without this, `collect` would keep a
    second history wherever it is typed. Everything of the collection itself has absolute paths by now.
    Raises `Refusal` if the folder cannot be used, `Failure` if Dagster's history there is damaged.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        os.chdir(home)
        lock = os.open(home, os.O_RDONLY)
    except OSError as error:
        raise _unusable(home, error) from error
    try:
        # Dagster's SQLite storages are damaged when two processes create them at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / CONFIG).exists():
            (home / CONFIG).write_text(NEW_HOME, "utf-8")
        opened = _without_capture(home)
    except OSError as error:
        raise _unusable(home, error) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "alembic":  # Dagster's own migrations; no dependency of ours
            raise
        raise Failure(
            f"Dagster's history in DAGSTER_HOME={home} is damaged or of another version of Dagster: {error}."
            " The collection (database and reports) is kept as it is. Stop what uses Dagster, delete the folder that"
            f" `base_dir` under `storage` in {home / CONFIG} names (data/dagster as delivered; it holds Dagster's list"
            " of launches and their logs, nothing of the collection), and type the command again."
        ) from error
    finally:
        os.close(lock)
    with opened as instance:
        yield instance


def _without_capture(home: Path) -> dg.DagsterInstance:
    """The instance that the home's dagster.yaml describes, but for `NO_CAPTURE`: Dagster takes settings from files."""
    config = yaml.safe_load((home / CONFIG).read_text("utf-8")) or {}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as overridden:
        yaml.safe_dump({**config, **NO_CAPTURE}, overridden)
        overridden.flush()
        return dg.DagsterInstance.from_config(str(home), overridden.name)


def _unusable(home: Path, error: OSError) -> Refusal:
    return Refusal(f"DAGSTER_HOME={home} cannot be used: {error.strerror}. Name a folder that you may write to.")


if __name__ == "__main__":  # before `dagster dev`, which knows nothing of the lock
    from collection_pipeline.cli import opening

    try:
        with open_instance(opening.settings().dagster_home):
            pass
    except click.ClickException as refusal:
        refusal.show()
        sys.exit(refusal.exit_code)
