"""The Dagster instance of DAGSTER_HOME, so that what the command line does shows up in Dagster's UI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from collection_pipeline.cli.group import Refusal

CONFIG = "dagster.yaml"

NEW_HOME = """\
# Written by `collect` for a new DAGSTER_HOME. No usage data leaves this machine, and the UI asks for no e-mail address.
telemetry:
  enabled: false
nux:
  enabled: false
"""


@contextmanager
def open_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Open the instance in `home`, made if need be. The process then works in that folder.

    Relative paths in a dagster.yaml count from the folder that a process works in: without this, `collect` would keep a
    second history wherever it is typed. Everything of the collection itself has absolute paths by now.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not (home / CONFIG).exists():
            (home / CONFIG).write_text(NEW_HOME, "utf-8")
        os.chdir(home)
    except OSError as error:
        raise Refusal(
            f"DAGSTER_HOME={home} cannot be used: {error.strerror}. Name a folder that you may write to."
        ) from error
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance
