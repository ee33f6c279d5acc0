"""wiring: the command line `collect`, a module for each command; what is heavy is imported by those that need it."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TextIO

from collection_pipeline.cli import emulator, graph, prune, rerun, retract, run, status, why
from collection_pipeline.cli.group import FAILED, collect, stop
from collection_pipeline.cli.terminal import note

__all__ = ["collect", "main"]

for command in (
    run.run,
    status.status,
    why.why,
    rerun.rerun,
    retract.retract,
    prune.prune,
    graph.graph,
    emulator.emulator,
):
    collect.add_command(command)


def main() -> None:
    """The console script; `collect --help` has the exit codes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal of another encoding is no reason to fail
    signal.signal(signal.SIGTERM, stop)  # how those who run commands unattended stop them
    try:
        collect(prog_name="collect")
    except OSError as error:
        if not _is_lost(sys.stdout):
            raise
        note(f"The result could not be written: {error.strerror}.")
        # Or the interpreter would try once more at its end, and complain in its own way.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)


def _is_lost(stream: TextIO) -> bool:
    """Whether what was written to the stream cannot reach its end."""
    try:
        stream.flush()
    except OSError:
        return True
    return False
