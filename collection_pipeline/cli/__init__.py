"""wiring: the command line `collect`, a module for each command; what is heavy is imported by those that need it."""

from __future__ import annotations

import os
import signal
import sys

from collection_pipeline.cli import emulator, graph, prune, rerun, retract, run, runs, status, why
from collection_pipeline.cli.group import FAILED, collect, stop
from collection_pipeline.cli.streams import ResultLostError, open_standard_streams
from collection_pipeline.cli.terminal import note

__all__ = ["collect", "main"]

for command in (
    run.run,
    status.status,
    runs.runs,
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
    open_standard_streams()
    signal.signal(signal.SIGTERM, stop)  # how those who run commands unattended stop them
    try:
        collect(prog_name="collect")
    except ResultLostError as error:
        note(f"The result could not be written: {error.strerror}.")
        # Or the interpreter would try once more at its end, and complain in its own way.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
