"""A folder in which people collect from an emulator that keeps books, while processes are killed and things break."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.store.database import normalise
from collection_pipeline.sources.emulator.account import Account
from collection_pipeline_tests import children

RUN = "2026-11-29"


@dataclass
class Desk:
    """The folder, the database, and the emulator's address and books."""

    folder: Path
    database_url: str
    base_url: str
    account: Account
    environment: dict[str, str] = field(default_factory=dict)
    commands: int = 0

    def start(
        self, *args: str, prepare: Callable[[], None] | None = None, **environment: str
    ) -> tuple[ForkServerProcess, Path]:
        """Type `collect` with these arguments and leave it running; its words go into the file.

        `prepare` is done first in that process: what breaks its surroundings.
        """
        self.commands += 1
        output = self.folder / f"said-{self.commands}.txt"
        own = {
            "PATH": "/usr/bin:/bin",
            "PYTHONUTF8": "1",
            "SERPBASE_BASE_URL": self.base_url,
            "SERPBASE_API_KEY": "key",
            "COLLECTION_DATABASE_URL": self.database_url,
            "COLLECTION_QUERIES": str(self.folder / "queries.toml"),
        }
        environ = {**own, **self.environment, **environment}
        return children.start(children.collect, self.folder, environ, args, (output, output), prepare), output

    def collect(
        self, *args: str, expect: int = 0, prepare: Callable[[], None] | None = None, **environment: str
    ) -> str:
        """Type `collect`, expect it to end with this exit code, and return all it said."""
        process, output = self.start(*args, prepare=prepare, **environment)
        code = children.ended(process)
        said = output.read_text()
        assert code == expect, f"collect {' '.join(args)} ended with {code}:\n{said}"
        return said

    def set_faults(self, text: str) -> None:
        """Have the emulator show these faults from now on."""
        request = urllib.request.Request(f"{self.base_url}/emulator/faults", text.encode(), method="PUT")
        with urllib.request.urlopen(request, timeout=20) as response:
            assert response.status == 200

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Ask the database as anybody would."""
        engine = sa.create_engine(normalise(self.database_url))
        with engine.connect() as connection:
            found = list(connection.execute(sa.text(statement), values))
        engine.dispose()
        return found

    def one(self, statement: str, **values: object) -> Any:
        """The one value of the one row."""
        ((value,),) = self.rows(statement, **values)
        return value

    def statuses(self) -> dict[str, str]:
        """The state table of the run."""
        return dict(tuple(row) for row in self.rows("SELECT job_id, status FROM jobs WHERE run_id = :run", run=RUN))

    def status(self) -> dict[str, Any]:
        """`collect status --json`."""
        value: dict[str, Any] = json.loads(self.collect("status", RUN, "--json").splitlines()[-1])
        return value
