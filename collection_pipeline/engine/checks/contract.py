"""What a check is: a judgement of the evidence about staged rows, which may make an artifact unusable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Severity = Literal["hard", "soft"]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The verdict of one check on one staged artifact. A failed hard check makes the artifact unusable."""

    name: str
    passed: bool
    severity: Severity
    description: str
    metadata: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def rejects(self) -> bool:
        """Whether this verdict makes the artifact unusable."""
        return not self.passed and self.severity == "hard"

    def to_json(self) -> dict[str, Any]:
        """The verdict as the manifest keeps it."""
        return {
            "name": self.name,
            "passed": self.passed,
            "severity": self.severity,
            "description": self.description,
            "metadata": dict(self.metadata),
        }


class StagedRows(Protocol):
    """The rows of an attempt between write and publish, seen through aggregates only: nothing loads them again."""

    @property
    def row_count(self) -> int: ...

    def nulls(self) -> Mapping[str, int]:
        """How many values are missing, by column."""

    def duplicates(self, columns: Sequence[str] | None = None) -> int:
        """How many rows repeat the values of `columns` (the data set's key by default) of an earlier row."""


@dataclass(frozen=True, slots=True)
class CallCounts:
    """How an attempt's paid calls ended. What does not exist at the source is neither answered nor missing.

    `commonest_error` says what most of the missing ones ended with, and how many of them; empty when none is missing.
    """

    requested: int = 0
    answered: int = 0
    not_found: int = 0
    missing: int = 0
    commonest_error: str = ""

    @property
    def wanted(self) -> int:
        """Calls that could be answered."""
        return self.requested - self.not_found

    @property
    def share(self) -> float:
        """Answered calls over those that could be, 0 to 1; 1 when there was nothing to ask."""
        return self.answered / self.wanted if self.wanted else 1.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What checks judge by: the staged rows, and what the attempt knows beside them.

    `usual_rows` are the row counts of the last usable artifacts of earlier runs, newest first; `schema_errors` messages
    about rows that break the data set's description; `dropped` how many rows the source's answers did not make, by
    reason; `found` how many came of each thing that was asked for, where the step counts that; `degraded` and `omitted`
    one line per input that is older than the run or left out.
    """

    staged: StagedRows
    calls: CallCounts = CallCounts()
    usual_rows: Sequence[int] = ()
    schema_errors: Sequence[str] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[str, int] = field(default_factory=dict)
    degraded: Sequence[str] = ()
    omitted: Sequence[str] = ()


class Check(Protocol):
    """One check. `blocking` says whether its outcome can be hard."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def blocking(self) -> bool: ...
    def evaluate(self, evidence: Evidence) -> CheckOutcome: ...


def audit(checks: Sequence[Check], evidence: Evidence) -> list[CheckOutcome]:
    """Every check's verdict, in the order declared."""
    return [check.evaluate(evidence) for check in checks]
