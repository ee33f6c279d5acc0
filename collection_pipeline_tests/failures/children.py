"""Processes that may be killed: forked from a server that has the slow libraries loaded, so that one costs 50 ms."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

_SERVER = multiprocessing.get_context("forkserver")
# Not the assets: they read the environment, which each child has of its own.
_PRELOADED = ["aiohttp", "alembic.command", "apprise", "dagster", "pandera.pandas", "psycopg", "rich.live", "upath"]
_PRELOADED += ["collection_pipeline_tests.failures.publisher"]
_SERVER.set_forkserver_preload(_PRELOADED)

PATIENCE_S = 120


def start(target: Callable[..., None], *args: Any) -> ForkServerProcess:
    """Run a function of a module in a process of its own."""
    process = _SERVER.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def ended(process: ForkServerProcess) -> int:
    """Wait for the end; the exit code, negative for a signal."""
    process.join(PATIENCE_S)
    assert process.exitcode is not None, "the process did not end in time"
    return process.exitcode


def collect(
    folder: Path, environment: Mapping[str, str], args: Sequence[str], output: Path, prepare: Callable[[], None] | None
) -> None:
    """What a child does that types `collect`: in `folder`, its words into `output`, `prepare` done first."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with output.open("w") as stream, contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        # Also what C libraries and child processes write.
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        if prepare is not None:
            prepare()
        from collection_pipeline.cli import collect as command

        try:
            command(prog_name="collect", args=list(args))
        except SystemExit as end:
            stream.flush()
            sys.exit(end.code)
