"""What the jobs of the small collection do, by run: a file that tests write while everything else is running.

The bodies ask it each time they start, whatever process they run in, and leave a line about every start.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from collection_pipeline.sources.contract import TerminalSourceError, TransientSourceError

FOLDER = "SCRIPT_FOLDER"
"""Environment variable: the folder of the script, for processes that a test starts."""

USUAL_ROWS = 20

PATIENCE_S = 90
"""A job that is held gives up after this: a test that went wrong leaves no process behind."""

Then = Literal["succeed", "fail", "try again later", "interrupt", "die"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What one job does in one run: what it finds, and how it ends.

    `edition`: another one is other data. `then`: "try again later" is a transient error of the source, `times` times;
    "interrupt" is a Ctrl-C; "die" is a process killed without a chance to say anything. `held`: it works until
    `Script.release`.
    """

    rows: int = USUAL_ROWS
    edition: int = 1
    then: Then = "succeed"
    times: int = 1
    held: bool = False


@dataclass(frozen=True)
class Script:
    """The script in `folder`. Every job of every run succeeds until told otherwise."""

    folder: Path

    @classmethod
    def of_environment(cls) -> Script:
        return cls(Path(os.environ[FOLDER]))

    def tell(self, job_id: str, run_id: str, turn: Turn) -> None:
        """Have a job do this from now on, in one run."""
        self._write("turns", {**self._read("turns"), f"{job_id} {run_id}": asdict(turn)})

    def turn(self, job_id: str, run_id: str) -> Turn:
        return Turn(**self._read("turns").get(f"{job_id} {run_id}", {}))

    def set_clock(self, instant: datetime) -> None:
        """Stop the collection's clock at an instant."""
        self._write("clock", {"now": instant.isoformat()})

    def now(self) -> datetime:
        """The instant the clock is stopped at, else the real one."""
        found = self._read("clock").get("now")
        return datetime.fromisoformat(found) if found else datetime.now(UTC)

    def break_code(self, *, broken: bool) -> None:
        """Make the code location fail to load in processes that load it from now on, or mend it."""
        self._write("code", {"broken": "yes"} if broken else {})

    def refuse_to_load(self) -> None:
        """Raises while the code location is broken."""
        if self._read("code"):
            raise RuntimeError("the code location does not load")

    def release(self, job_id: str, run_id: str) -> None:
        """Let a held job go on."""
        (self.folder / f"released {job_id} {run_id}").touch()

    def starts(self, job_id: str, run_id: str) -> int:
        """How often the body of a job was started."""
        return self._log("starts").count(f"{job_id} {run_id}")

    def alerts(self) -> list[str]:
        """All alerts sent, in order: whether something began or is over, and its key."""
        return self._log("alerts")

    def alert(self, said: str) -> None:
        self._append("alerts", said)

    def play(self, job_id: str, run_id: str) -> Turn:
        """What the body of a job calls first: does what the script says, and returns it if the job is to succeed."""
        self._append("starts", f"{job_id} {run_id}")
        turn = self.turn(job_id, run_id)
        give_up = time.monotonic() + PATIENCE_S
        while turn.held and not (self.folder / f"released {job_id} {run_id}").exists():
            if time.monotonic() > give_up:
                raise TimeoutError(f"{job_id} of {run_id} was never released")
            time.sleep(0.02)
        match turn.then:
            case "fail":
                raise TerminalSourceError("the source says no")
            case "try again later" if self.starts(job_id, run_id) <= turn.times:
                raise TransientSourceError("the source is busy")
            case "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(PATIENCE_S)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
        return turn

    def _read(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        aside = self.folder / f"{name}.{os.getpid()}"
        aside.write_text(json.dumps(value))
        aside.replace(self.folder / f"{name}.json")

    def _log(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def _append(self, name: str, line: str) -> None:
        with (self.folder / name).open("a") as file:
            file.write(f"{line}\n")
