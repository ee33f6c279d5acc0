"""Defaults are closed: whatever is started listens at this machine's loopback and nowhere else."""

from __future__ import annotations

import ipaddress
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent
PATIENCE_S = 120


@contextmanager
def started(folder: Path, *command: str) -> Iterator[psutil.Process]:
    """A program as its documented command starts it, in a session of its own."""
    with (folder / "said.txt").open("w") as said:
        environ = {"PATH": os.environ["PATH"], "DAGSTER_HOME": str(folder)}
        program = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
        process = subprocess.Popen(
            program, cwd=folder, env=environ, stdout=said, stderr=said, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def listening(process: psutil.Process) -> list[str]:
    """The addresses at which it or a process that it started waits for connections, once there is one."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.is_running():
        family = [process, *process.children(recursive=True)]
        found = [
            connection.laddr.ip
            for each in family
            for connection in each.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("nothing listens")


@pytest.mark.parametrize(
    "command",
    [
        ["collect", "emulator", "--port", "0"],
        ["dagster-webserver", "--empty-workspace", "--port", "0"],
    ],
    ids=["emulator", "web server"],
)
def test_it_listens_at_loopback_only(command: Sequence[str], tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    with started(tmp_path, *command) as process:
        assert all(ipaddress.ip_address(address).is_loopback for address in listening(process))


@pytest.mark.parametrize("name", ["Makefile", "dagster.yaml", "deploy/README.md", "deploy/postgres/dagster.yaml"])
def test_no_documented_command_opens_it_wider(name: str) -> None:
    assert not re.search(r"0\.0\.0\.0|--host|\s-h\s", (ROOT / name).read_text("utf-8"))
