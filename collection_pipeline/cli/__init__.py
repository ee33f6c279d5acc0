"""wiring: the command line `collect`, a module for each command; what is heavy is imported by those that need it."""

from __future__ import annotations

import io
import signal
import sys

from collection_pipeline.cli import emulator, graph, prune, rerun, retract, run, status, why
from collection_pipeline.cli.group import collect, stop_as_by_ctrl_c

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
    signal.signal(signal.SIGTERM, stop_as_by_ctrl_c)  # how those who run commands unattended stop them
    collect(prog_name="collect")
