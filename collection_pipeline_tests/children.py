"""Processes that may be killed: forked from a server that has the slow libraries loaded, so that one costs 50 ms."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

_SERVER = multiprocessing.get_context("forkserver")
# Not the assets: they read the environment, which each child has of its own.
_PRELOADED = ["aiohttp", "alembic.command", "apprise", "dagster", "pandera.pandas", "psycopg", "rich.live", "upath"]
# What these load late, once a run is at work.
_PRELOADED += ["dagster._core.storage.sqlite_storage", "pandera.strategies.pandas_strategies"]
_PRELOADED += ["adbc_driver_sqlite.dbapi", "uvicorn.lifespan.off"]
_PRELOADED += ["uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto"]
_PRELOADED += ["collection_pipeline.engine.jobs.execution", "collection_pipeline.engine.store.frames"]
_PRELOADED += ["collection_pipeline.sources.emulator", "collection_pipeline.steps.report"]
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
    folder: Path,
    environment: Mapping[str, str],
    args: Sequence[str],
    output: tuple[Path, Path],
    prepare: Callable[[], None] | None = None,
) -> None:
    """What a child does that types `collect`: in `folder`, its results and its messages into the two files of `output`,
    which may be one. `prepare` is done first: what breaks its surroundings.
    """
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with ExitStack() as opened:
        out, err = (opened.enter_context(file.open("a", 1, encoding="utf-8")) for file in output)
        opened.enter_context(redirect_stdout(out))
        opened.enter_context(redirect_stderr(err))
        # Also what C libraries and child processes write.
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        if prepare is not None:
            prepare()
        sys.argv = ["collect", *args]
        from collection_pipeline.cli import main

        main()
