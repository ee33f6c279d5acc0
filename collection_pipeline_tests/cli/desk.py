"""A folder in which `collect` is typed, and what came of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from collection_pipeline_tests import children

QUERIES = '[[query]]\nq = "Reykjavik airport"\ngl = "is"\n'
"""One page of one query, which finds two airports."""

PROGRAM = """
import atexit, os, sys
from collection_pipeline.cli import main
loaded = os.environ.pop("TEST_LOADED", None)
if loaded:
    atexit.register(lambda: open(loaded, "w").write("\\n".join(sys.modules)))
main()
"""

TIMEOUT_S = 300


@dataclass(frozen=True)
class Done:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one line of stdout as JSON."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def jobs(self) -> dict[str, Any]:
        """The jobs of that JSON by their names: those of the template, and whichever were added to it."""
        return {job["job_id"]: job for job in self.json["jobs"]}


@dataclass(frozen=True)
class Desk:
    """The folder, with its own database, reports and Dagster history under `data/`."""

    folder: Path

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.folder / 'data' / 'collection.db'}"

    @contextmanager
    def start(
        self,
        *args: str,
        environment: Mapping[str, str] | None = None,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> Iterator[subprocess.Popen[str]]:
        """Type a command and have it running for the time of the block; whoever fails there leaves nothing behind."""
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *args],
            cwd=self.folder,
            env=self._environment(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            preexec_fn=_obey_interrupts,  # noqa: PLW1509 - these tests have no threads at that point
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def collect(self, *args: str, **environment: str) -> Done:
        """Type a command and wait for its end."""
        with TemporaryDirectory() as said:
            out, err = Path(said, "out"), Path(said, "err")
            environ = self._environment(environment)
            code = children.ended(children.start(children.collect, self.folder, environ, args, (out, err)))
            return Done(code, out.read_text("utf-8"), err.read_text("utf-8"))

    def collect_afresh(self, *args: str, **environment: str) -> tuple[Done, frozenset[str]]:
        """The same in an interpreter that has nothing loaded yet, and the packages that it has loaded at its end."""
        with TemporaryDirectory() as said:
            loaded = Path(said, "loaded")
            with self.start(*args, environment={"TEST_LOADED": str(loaded), **environment}) as process:
                out, err = process.communicate(timeout=TIMEOUT_S)
            modules = loaded.read_text().splitlines()
        return Done(process.returncode, out, err), frozenset(name.partition(".")[0] for name in modules)

    def _environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        own = {"COLLECTION_QUERIES": str(self.folder / "queries.toml"), "PYTHONUTF8": "1"}
        return {**inherited, **own, **changes}

    def copy(self, folder: Path) -> Desk:
        """The same history in another folder, to go on from there."""
        shutil.copytree(self.folder, folder)
        return Desk(folder)


def _obey_interrupts() -> None:
    """A shell starts what it puts in the background with interrupts ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def new_desk(folder: Path) -> Desk:
    """A folder with nothing but a queries file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "queries.toml").write_text(QUERIES, "utf-8")
    return Desk(folder)
