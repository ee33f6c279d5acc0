"""What becomes of results and messages where nothing can be written any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from collection_pipeline.cli.streams import lossy
from collection_pipeline_tests.cli.desk import PROGRAM, Desk

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")


@needs_full
def test_messages_that_cannot_be_written_are_lost_and_nothing_else() -> None:
    with FULL.open("w") as full, lossy(full) as messages:
        messages.write("search_results started\n")
        messages.flush()
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody_reads, lossy(nobody_reads) as messages:
        messages.write("search_results started\n")


@needs_full
@pytest.mark.parametrize(("command", "unbuffered"), [("--help", ""), ("status --json", "1"), ("graph", "")])
def test_a_result_that_cannot_be_written_is_a_failure_in_one_line(desk: Desk, command: str, unbuffered: str) -> None:
    code, err = typed(desk, command, "exec 1>/dev/full", unbuffered)
    assert code == 1
    assert err.splitlines()[-1] == "The result could not be written: No space left on device."
    assert "Traceback" not in err


def test_where_stdout_is_closed_the_result_is_lost_and_where_stderr_is_too_nobody_wants_it(desk: Desk) -> None:
    code, err = typed(desk, "graph", "exec 1>&-")
    assert (code, err) == (1, "The result could not be written: Bad file descriptor.\n")
    assert typed(desk, "graph", "exec 0<&- 1>&- 2>&-") == (0, "")


@needs_full
def test_a_run_whose_messages_cannot_be_written_is_collected_all_the_same(desk: Desk) -> None:
    assert typed(desk, "run 2026-11-29", "exec 2>/dev/full") == (0, "")
    assert desk.collect("status", "--json").json["settled"] is True


def typed(desk: Desk, command: str, redirected: str, unbuffered: str = "") -> tuple[int, str]:
    """The exit code and stderr of a command in a shell whose streams were redirected."""
    done = subprocess.run(
        ["sh", "-c", f'{redirected}; exec "$0" "$@"', sys.executable, "-c", PROGRAM, *command.split()],
        cwd=desk.folder,
        env={
            "PATH": os.environ["PATH"],
            "COLLECTION_QUERIES": str(desk.folder / "queries.toml"),
            "PYTHONUNBUFFERED": unbuffered,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr
