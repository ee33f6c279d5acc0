"""How an attempt ended, in words: what happened to which job and run, what was kept, what to type."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path

from collection_pipeline.engine.checks import CallCounts, CheckOutcome
from collection_pipeline.engine.planning.state import Inputs
from collection_pipeline.engine.visible import visible
from collection_pipeline.engine.words.ages import identity

INTERRUPTED = "interrupted"
"""Kind of failure of an attempt that a signal or a person stopped."""

ABANDONED = "abandoned"
"""Kind of failure of an attempt whose holder ended without a word."""

_ENGINE = Path(__file__).parents[1]

PAID_FOR_KEPT = "What was paid for is kept: the next attempt buys only what is missing."


def failure_reason(error: BaseException) -> str:
    """Why the attempt failed, in one line for the state table."""
    if failure_kind(error) == INTERRUPTED:
        return INTERRUPTED
    if hasattr(error, "kind") or hasattr(error, "retryable"):
        return visible(str(error))
    return visible(f"{type(error).__name__}: {error}{_place(error)}")


def failure_kind(error: BaseException) -> str:
    """The word for what ended the attempt."""
    if not isinstance(error, Exception | SystemExit):
        return INTERRUPTED
    return getattr(error, "kind", None) or type(error).__name__


def _place(error: BaseException) -> str:
    """Where the error is to be looked for: the innermost line that is of no installed package, and if possible not of
    the engine."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    yours = [frame for frame in own if not Path(frame.filename).is_relative_to(_ENGINE)]
    innermost = (yours or own)[-1:]
    return "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in innermost)


def failed_text(run_id: str, job_id: str, reason: str, command: str) -> str:
    """The failure as Dagster shows it; `command` is what to type."""
    return f"{job_id} of {run_id} failed: {reason}\n{PAID_FOR_KEPT}\nType: {command}"


def only_checks_text(run_id: str, job_id: str) -> str:
    """What a person is told who launches checks of a job without the job."""
    return (
        f"Nothing was done: the checks of {job_id} are judged when the job runs. Materialize {job_id}, or type:"
        f" collect rerun {job_id} {run_id}"
    )


def held_text(run_id: str, job_id: str, held: str) -> str:
    """What a person is told when nothing can be known about who holds the job; `held` says who it is."""
    way_out = f"collect rerun {job_id} {run_id} --take-over"
    return f"{held}\nNothing can be known about it from here. If it is gone, type: {way_out}"


def stopped_text(run_id: str, job_id: str) -> str:
    """What Dagster is told of a job whose turn came after somebody had asked its process to stop."""
    return f"{job_id} of {run_id} did not start: it was asked to stop. To go on, type: collect run {run_id}"


def made_meanwhile_text(run_id: str, job_id: str, dagster_run_id: str) -> str:
    """What the second of two launches at once is told, if it had to wait until the first was done."""
    return (
        f"{job_id} of {run_id} was made by Dagster run {dagster_run_id} while this launch waited, so nothing was bought"
        f" again. For a further version, launch it once more, or type: collect rerun {job_id} {run_id}"
    )


def rejection_reason(outcomes: Sequence[CheckOutcome]) -> str:
    """Why a version is not usable, in one line, with what the soft checks say beside; empty when it is usable."""
    reasons = [f"check {outcome.name} failed: {outcome.description}" for outcome in outcomes if outcome.rejects]
    warnings = [f"warning: {outcome.description}" for outcome in outcomes if not outcome.passed and not outcome.rejects]
    return "; ".join([*reasons, *warnings]) if reasons else ""


def rejected_text(run_id: str, job_id: str, version: int, reason: str, command: str) -> str:
    """The rejection as Dagster shows it; `command` is what to type."""
    return (
        f"{job_id} of {run_id} failed: {reason}\nVersion {version} is stored for inspection, and nobody reads it.\n"
        f"Type: {command}"
    )


def too_little_text(calls: CallCounts) -> str:
    """Why an attempt with too few answers is tried again."""
    return f"only {calls.answered} of {calls.wanted} calls got an answer. {PAID_FOR_KEPT}"


def degraded_inputs(run_id: str, inputs: Inputs, timezone: tzinfo) -> list[str]:
    """One line for each input that is older than the run."""
    return [
        identity(artifact, timezone)
        for artifact in inputs.values()
        if artifact is not None and artifact.stands_on_older_data(run_id)
    ]


def omitted_inputs(inputs: Inputs) -> list[str]:
    """One line for each input that was left out."""
    return [f"without {upstream}" for upstream, artifact in inputs.items() if artifact is None]


def never_started_reason(dagster_run_id: str, times: int, *, cancelled: bool) -> str:
    """Why a job that never started is failed."""
    if cancelled:
        return f"Dagster run {dagster_run_id} was cancelled before it started the job"
    return f"{times} Dagster runs in a row ended before they started the job, the last one {dagster_run_id}"
