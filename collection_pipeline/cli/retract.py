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
from collection_pipeline.engine.visible import is_garbled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.planning.state import Artifact
    from collection_pipeline.engine.run_ids import RunId
    from collection_pipeline.engine.store import Retraction
    from collection_pipeline.engine.words.explain import Explanation

LONGEST_REASON = 500
"""Characters. The reason is repeated wherever a withdrawn version is spoken of."""


@click.command()
@click.argument("job")
@click.argument("run_id", type=RUN_ID)
@click.option("--reason", metavar="TEXT", help="Why, which has to be said; it stays with all that is withdrawn.")
@click.option(
    "--version", type=click.IntRange(1, 2**31 - 1), metavar="N", help="Default: the version that consumers read now."
)
@click.option("--dry-run", is_flag=True, help="Only list what would be withdrawn.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def retract(
    *, job: str, run_id: RunId, reason: str | None, version: int | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Withdraw a version of JOB in RUN_ID and every artifact that was built on it, in whatever run.

    What stands behind a pinned edge stays, marked as built on retracted data. Rows stay readable by version.
    """
    reason = (reason or "").strip()
    if not reason and not dry_run:
        raise Refusal("Say with --reason, in a few words, what is wrong with the data. Nothing was changed.")
    if len(reason) > LONGEST_REASON or is_garbled(reason):
        raise Refusal(
            f"--reason is one line of at most {LONGEST_REASON} characters in UTF-8, without control characters."
            " Nothing was changed."
        )
    collection = opening.kept_collection(opening.settings(), run_id)
    store = collection.store
    job_id = opening.known_job(job, (each.job_id for each in store.run_view(run_id.text).jobs))
    found = store.retraction(job_id, run_id.text, version)
    if dry_run:
        _print(found, [], as_json=as_json, done=False)
        return
    if not yes:
        confirm(_lines(found, done=False), "Withdraw?")
    root = found.withdrawn[0]
    done = store.retract(job_id, run_id.text, root.version, reason, collection.now())
    runs = dict.fromkeys(each.run_id for each in done.withdrawn)
    anew = list(_look(collection, runs))
    _print(done, anew, as_json=as_json)
    commands = [command for explanation in anew for command in explanation.next_commands()]
    if commands:
        note("Where propagation_sensor runs, what is due starts at its next tick. To act now:")
    for command in commands:
        note(f"  {command}")


def _look(collection: Collection, runs: Iterable[str]) -> Iterator[Explanation]:
    from collection_pipeline.engine.store import StoreError

    for run_id in runs:
        try:
            yield look(opening.of_run(collection, run_id), run_id).found.explanation
        except StoreError as error:  # what was withdrawn is withdrawn all the same
            note(f"What is decided now in run {run_id} cannot be shown. {error}")


def _lines(found: Retraction, *, done: bool) -> list[str]:
    withdrawn, stays = ("withdrawn", "stays") if done else ("would be withdrawn", "would stay")
    lines = [f"{withdrawn}: {_name(each)}" for each in found.withdrawn]
    return lines + [f"{stays}, built on retracted data: {_name(each)}" for each in found.standing]


def _name(artifact: Artifact) -> str:
    return f"{artifact.job_id} of {artifact.run_id}, version {artifact.version}"


def _decided(done: Retraction, explanation: Explanation) -> Iterator[tuple[str, str, str]]:
    """What is decided now about the jobs of a run that lost an artifact: run, job and reason."""
    for each in done.withdrawn:
        if each.run_id == explanation.run.run_id and each.job_id in explanation.plan.decisions:
            yield each.run_id, each.job_id, explanation.reason(each.job_id)


def _print(found: Retraction, anew: Sequence[Explanation], *, as_json: bool, done: bool = True) -> None:
    decided = [each for explanation in anew for each in _decided(found, explanation)]
    if as_json:
        result_json(
            {
                "withdrawn": [_to_json(each) for each in found.withdrawn],
                "standing": [_to_json(each) for each in found.standing],
                "decided_anew": [
                    {"run_id": run_id, "job_id": job_id, "reason": reason} for run_id, job_id, reason in decided
                ],
            }
        )
        return
    for line in _lines(found, done=done):
        result(line)
    for run_id, job_id, reason in decided:
        result(f"decided anew: {job_id} of {run_id}: {reason}")


def _to_json(artifact: Artifact) -> dict[str, Any]:
    return {
        "job_id": artifact.job_id,
        "run_id": artifact.run_id,
        "version": artifact.version,
        "as_of": instant(artifact.as_of),
    }
