"""The checks that assets declare, and those that every asset has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, get_args

from collection_pipeline.engine.checks.contract import CallCounts, Check, CheckOutcome, Evidence, Severity
from collection_pipeline.engine.counting import counted
from collection_pipeline.engine.declarations import DeclarationError, call_site

COVERAGE = "coverage"
"""The name of the coverage check, which a retry may still turn around."""

VOLUME = "volume"
"""The name of what every asset says about its number of rows: `Volume` or `AnyVolume`."""

NAMED = 5
"""How many of many are named in the words of a check."""


@dataclass(frozen=True, slots=True)
class Present:
    """Hard: at least one row carries a value in `column`, however successful the calls were."""

    column: str
    blocking: bool = field(default=True, init=False)

    @property
    def name(self) -> str:
        return f"{self.column}_present"

    @property
    def description(self) -> str:
        return f"At least one row has a {self.column}."

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        rows = evidence.staged.row_count
        count = rows - evidence.staged.nulls()[self.column]
        said = f"{count} of {counted(rows, 'row')} with a {self.column}"
        return CheckOutcome(self.name, count > 0, "hard", said, {"rows": rows, "present": count})


@dataclass(frozen=True, slots=True)
class Fruitful:
    """Soft: each thing that was asked for and answered brought a row, by what the step counts in `Losses.found`.

    `asked` is what they are called, in the plural. What was not answered is for `Coverage` to say.
    """

    asked: str
    blocking: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        return f"fruitful_{self.asked}"

    @property
    def description(self) -> str:
        return f"All {self.asked} that were answered found something."

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        empty = [name for name, rows in evidence.found.items() if not rows]
        said = f"{len(empty)} of {len(evidence.found)} {self.asked} found nothing"
        if empty:
            said += f": {'; '.join(empty[:NAMED])}"
        if len(empty) > NAMED:
            said += f"; and {len(empty) - NAMED} more"
        return CheckOutcome(self.name, not empty, "soft", said, {"asked": len(evidence.found), "empty": len(empty)})


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """Hard: no two rows share the data set's key."""

    columns: tuple[str, ...]
    name: str = field(default="unique_key", init=False)
    blocking: bool = field(default=True, init=False)

    @property
    def description(self) -> str:
        return f"No two rows share ({', '.join(self.columns)})."

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        repeated = evidence.staged.duplicates(self.columns)
        said = f"{counted(repeated, 'row')} with the key of an earlier one"
        return CheckOutcome(self.name, repeated == 0, "hard", said, {"duplicates": repeated})


@dataclass(frozen=True, slots=True)
class Schema:
    """Hard: every row is as the data set describes it (types, required columns)."""

    name: str = field(default="schema", init=False)
    description: str = field(default="Every row has the described columns, types and required values.", init=False)
    blocking: bool = field(default=True, init=False)

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        errors = evidence.schema_errors
        said = "; ".join(errors[:NAMED]) if errors else f"{counted(evidence.staged.row_count, 'row')} as described"
        return CheckOutcome(self.name, not errors, "hard", said, {"errors": len(errors)})


@dataclass(frozen=True, slots=True)
class Coverage:
    """Two lines for the share of calls answered: under `hard` the job fails, under `soft` it warns.

    What the source says does not exist is neither answered nor missing: it is counted apart. Raises `DeclarationError`.
    """

    hard: float
    soft: float = 1.0
    name: str = field(default=COVERAGE, init=False)
    blocking: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.hard <= self.soft <= 1:
            raise DeclarationError(
                f"{call_site(2)}: Coverage(hard={self.hard}, soft={self.soft}): write shares, 0 <= hard <= soft <= 1."
            )

    @property
    def description(self) -> str:
        return f"Share of calls answered: fails under {self.hard:.0%}, warns under {self.soft:.0%}."

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        calls = evidence.calls
        wanted = counted(calls.wanted, "call")
        said = f"{calls.answered} of {wanted} answered ({calls.share:.1%}), {calls.missing} missing"
        if calls.commonest_error:
            said += f": {calls.commonest_error}"
        if calls.not_found:
            said += f"; {calls.not_found} not found at the source"
        return CheckOutcome(
            self.name,
            calls.share >= self.soft,
            "hard" if calls.share < self.hard else "soft",
            said,
            {
                "coverage": calls.share,
                "answered": calls.answered,
                "missing": calls.missing,
                "not_found": calls.not_found,
            },
        )


def calls_covered(checks: Iterable[Mapping[str, Any]]) -> CallCounts | None:
    """How the calls behind an artifact ended, as the manifest keeps its checks; None without coverage."""
    for check in checks:
        if check["name"] == COVERAGE:
            answered, not_found, missing = (check["metadata"][name] for name in ("answered", "not_found", "missing"))
            return CallCounts(answered + not_found + missing, answered, not_found, missing)
    return None


@dataclass(frozen=True, slots=True)
class Volume:
    """An artifact much smaller than usual is suspicious: a floor in rows, and one relative to the last runs' median.

    `min_share` is measured against the median of the last runs' row counts (0 to 1, None: not compared). Each floor is
    hard or soft on its own. An asset for which any number of rows is fine says so with `AnyVolume`. Raises
    `DeclarationError`.
    """

    min_rows: int = 1
    min_share: float | None = 0.5
    rows_severity: Severity = "hard"
    share_severity: Severity = "hard"
    name: str = field(default=VOLUME, init=False)

    def __post_init__(self) -> None:
        if self.min_rows < 0 or not 0 <= (self.min_share or 0) <= 1:
            raise DeclarationError(
                f"{call_site(2)}: Volume(min_rows={self.min_rows}, min_share={self.min_share}): write a number of rows"
                " from 0, and a share from 0 to 1 or None."
            )
        if not {self.rows_severity, self.share_severity} <= set(get_args(Severity)):
            raise DeclarationError(
                f"{call_site(2)}: Volume(rows_severity={self.rows_severity!r}, share_severity={self.share_severity!r}):"
                f" write {' or '.join(get_args(Severity))}."
            )

    @property
    def blocking(self) -> bool:
        compared = () if self.min_share is None else (self.share_severity,)
        return "hard" in (self.rows_severity, *compared)

    @property
    def description(self) -> str:
        relative = "" if self.min_share is None else f" and {self.min_share:.0%} of the usual number"
        return f"At least {counted(self.min_rows, 'row')}{relative}."

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        usual = median(evidence.usual_rows) if evidence.usual_rows and self.min_share is not None else 0.0
        floors = ((float(self.min_rows), self.rows_severity), (usual * (self.min_share or 0.0), self.share_severity))
        rows = evidence.staged.row_count
        broken = [severity for floor, severity in floors if rows < floor]
        said = f"{counted(rows, 'row')}, at least {max(floor for floor, _ in floors):g} expected"
        if usual:
            said += f" (usual: {usual:g}, min_share: {self.min_share:g})"
        if evidence.dropped:
            said += f"; dropped: {', '.join(f'{count} {reason}' for reason, count in evidence.dropped.items())}"
        severity: Severity = "hard" if "hard" in broken or (not broken and self.blocking) else "soft"
        return CheckOutcome(self.name, not broken, severity, said, {"rows": rows, "usual": usual})


@dataclass(frozen=True, slots=True)
class AnyVolume:
    """The way out of `Volume`: any number of rows is fine, and `why`."""

    why: str
    name: str = field(default=VOLUME, init=False)
    blocking: bool = field(default=False, init=False)

    @property
    def description(self) -> str:
        return f"Any number of rows is fine: {self.why}."

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        rows = evidence.staged.row_count
        said = f"{counted(rows, 'row')}; any number is fine: {self.why}"
        return CheckOutcome(self.name, True, "soft", said, {"rows": rows})


@dataclass(frozen=True, slots=True)
class _Said:
    """Soft: says aloud what the decision about the inputs already accepted."""

    name: str
    description: str
    lines: Callable[[Evidence], Sequence[str]]
    otherwise: str
    blocking: bool = field(default=False, init=False)

    def evaluate(self, evidence: Evidence) -> CheckOutcome:
        lines = self.lines(evidence)
        return CheckOutcome(self.name, not lines, "soft", "; ".join(lines) or self.otherwise, {"inputs": len(lines)})


DEGRADED_INPUTS: Check = _Said(
    "degraded_inputs", "Every input is of this run.", lambda evidence: evidence.degraded, "every input is of this run"
)
OMITTED_INPUTS: Check = _Said(
    "omitted_inputs", "No input was left out.", lambda evidence: evidence.omitted, "no input was left out"
)
