"""wiring: the command line `collect`, a module for each command; what is heavy is imported by those that need it."""

from __future__ import annotations

import io
import signal
import sys

from collection_pipeline.cli import emulator, graph, prune, rerun, retract, run, status, why
from collection_pipeline.cli.group import Interrupted, collect

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
    # Whoever runs commands unattended stops them with SIGTERM, and means what Ctrl-C means.
    signal.signal(signal.SIGTERM, Interrupted.by_signal)
    collect(prog_name="collect")
