"""`collect retract`: withdraw a version that was found to be wrong, and all that stands on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.confirming import confirm
from collection_pipeline.cli.group import Refusal
from collection_pipeline.cli.opening import RUN_ID, instant
from collection_pipeline.cli.state_table import look
from collection_pipeline.cli.terminal import note, result, result_json

if TYPE_CHECKING:
    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.planning.state import Artifact
    from collection_pipeline.engine.run_ids import RunId
    from collection_pipeline.engine.store import Retraction


@click.command()
@click.argument("job")
@click.argument("run_id", type=RUN_ID)
@click.option("--reason", required=True, metavar="TEXT", help="Why; it stays with every version that is withdrawn.")
@click.option(
    "--version", type=click.IntRange(1, 2**31 - 1), metavar="N", help="Default: the version that consumers read now."
)
@click.option("--dry-run", is_flag=True, help="Only list what would be withdrawn.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def retract(
    *, job: str, run_id: RunId, reason: str, version: int | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Withdraw a version of JOB in RUN_ID and every artifact that was built on it, in whatever run.

    What stands behind a pinned edge stays, marked as built on retracted data. Rows stay readable by version.
    """
    if not reason.strip():
        raise Refusal("--reason is empty; say in a few words what is wrong with the data.")
    collection = opening.kept_collection(opening.settings(), run_id)
    store = collection.store
    job_id = opening.known_job(job, (each.job_id for each in store.run_view(run_id.text).jobs))
    found = store.retraction(job_id, run_id.text, version)
    if dry_run:
        _print(found, {}, as_json=as_json, done=False)
        return
    if not yes:
        confirm(_lines(found, done=False), "Withdraw?")
    root = found.withdrawn[0]
    done = store.retract(job_id, run_id.text, root.version, reason.strip(), collection.now())
    _print(done, {run: _anew(collection, run, done) for run in _runs(done)}, as_json=as_json)
    note("Where propagation_sensor runs, that happens by itself. To act now:")
    for each in _runs(done):
        note(f"  collect run {each}")


def _lines(found: Retraction, *, done: bool) -> list[str]:
    withdrawn, stays = ("withdrawn", "stays") if done else ("would be withdrawn", "would stay")
    lines = [f"{withdrawn}: {_name(each)}" for each in found.withdrawn]
    return lines + [f"{stays}, built on retracted data: {_name(each)}" for each in found.standing]


def _name(artifact: Artifact) -> str:
    return f"{artifact.job_id} of {artifact.run_id}, version {artifact.version}"


def _runs(found: Retraction) -> list[str]:
    return list(dict.fromkeys(each.run_id for each in found.withdrawn))


def _anew(collection: Collection, run_id: str, done: Retraction) -> dict[str, str]:
    """What is decided now about the jobs that lost an artifact."""
    explanation = look(opening.of_run(collection, run_id), run_id).found.explanation
    lost = (each.job_id for each in done.withdrawn if each.run_id == run_id)
    return {job_id: explanation.reason(job_id) for job_id in lost if job_id in explanation.plan.decisions}


def _print(found: Retraction, anew: dict[str, dict[str, str]], *, as_json: bool, done: bool = True) -> None:
    if as_json:
        result_json(
            {
                "withdrawn": [_to_json(each) for each in found.withdrawn],
                "standing": [_to_json(each) for each in found.standing],
                "decided_anew": [
                    {"run_id": run_id, "job_id": job_id, "reason": reason}
                    for run_id, jobs in anew.items()
                    for job_id, reason in jobs.items()
                ],
            }
        )
        return
    for line in _lines(found, done=done):
        result(line)
    for run_id, jobs in anew.items():
        for job_id, reason in jobs.items():
            result(f"decided anew: {job_id} of {run_id}: {reason}")


def _to_json(artifact: Artifact) -> dict[str, Any]:
    return {
        "job_id": artifact.job_id,
        "run_id": artifact.run_id,
        "version": artifact.version,
        "as_of": instant(artifact.as_of),
    }
