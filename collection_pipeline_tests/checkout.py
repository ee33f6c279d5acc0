"""A copy of the checkout in which commands are typed, and the servers that some of them start."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from deploy.ports import free_port

ROOT = Path(__file__).parent.parent

ZONE = ZoneInfo(f"Etc/GMT{datetime.now(UTC).hour - 12:+d}")
"""Where it is midday, so that no command is run across midnight."""

TIMEOUT_S = 120


@dataclass(frozen=True)
class Checkout:
    """A copy of the checkout that is set up already: its `.venv` is the environment that the tests run in."""

    folder: Path
    port: int

    def start(self, command: str) -> subprocess.Popen[str]:
        """Type a command, in a session of its own."""
        own = {
            "PATH": f"{self.folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder),
            "PYTHONUTF8": "1",
            "COLLECTION_TIMEZONE": ZONE.key,
            "DAGSTER_CLI_DEV_PORT": str(self.port),
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        return subprocess.Popen(
            ["bash", "-c", command.replace("8765", str(self.port))],
            cwd=self.folder,
            env=inherited | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=default_signals,  # noqa: PLW1509 - it takes no lock that a thread might hold
        )

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of a command, and all that it printed."""
        with ended(self.start(command)) as process:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, output


def default_signals() -> None:
    # A shell that starts tests in the background has SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Interrupt the process and all that it started when the block ends, and wait for them."""
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                try:
                    process.communicate(timeout=TIMEOUT_S)  # until nobody holds the pipe any more
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise


def copy_checkout(folder: Path) -> Checkout:
    """Copy what people have after `make run`, all but the data."""
    left_out = shutil.ignore_patterns(".*", "data", "__pycache__", "benchmarks", "collection_pipeline_tests")
    shutil.copytree(ROOT, folder, ignore=left_out)
    (folder / ".venv").mkdir()
    for part in ("bin", "lib", "pyvenv.cfg"):  # what makes its python find the packages
        (folder / ".venv" / part).symlink_to(Path(sys.prefix) / part)
    for stamp in (".runtime", ".dev"):
        (folder / ".venv" / stamp).touch()
    return Checkout(folder, free_port())


def answer(url: str, serving: subprocess.Popen[str]) -> str:
    """What a server says as soon as it answers."""
    while serving.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                text: str = response.read().decode()
                return text
        except urllib.error.URLError:
            time.sleep(0.1)  # it does not say when it listens
    assert serving.stdout is not None
    raise AssertionError(f"It ended before it answered:\n{serving.stdout.read()}")
