"""`collect prune`: let old runs go, their rows, files and Dagster partitions together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.confirming import confirm
from collection_pipeline.cli.terminal import note, result, result_json
from collection_pipeline.engine.counting import counted

if TYPE_CHECKING:
    from collection_pipeline.engine.store import Store


@click.command()
@click.option("--keep-days", type=click.IntRange(1, 36_500), required=True, help="Runs of the last so many days stay.")
@click.option(
    "--keep-runs", type=click.IntRange(0), default=0, show_default=True, help="The newest so many runs stay anyway."
)
@click.option("--dry-run", is_flag=True, help="Only list the runs that would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def prune(*, keep_days: int, keep_runs: int, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove settled runs that are old enough, and never what a run that stays was built on.

    If it is stopped, the next pruning finishes what this one began.
    """
    settings = opening.settings()
    collection = opening.kept_collection(settings)
    store, now = collection.store, collection.now()
    going = store.prunable(keep_days=keep_days, keep_runs=keep_runs, now=now)
    if going and not dry_run and not yes:
        confirm((f"would go: {run_id}" for run_id in going), f"Remove {counted(len(going), 'run')} with all data?")
    if not dry_run:
        from collection_pipeline.cli.instance import open_instance
        from collection_pipeline.engine.jobs.files import remove_files
        from collection_pipeline.engine.runs.launches import RUN_ID

        going = []
        with open_instance(settings.dagster_home) as instance:
            for removal in store.prune(keep_days=keep_days, keep_runs=keep_runs, now=now):
                if not _is_open_again(store, removal.run_id):
                    remove_files(collection.reports, removal.files)
                    instance.delete_dynamic_partition(RUN_ID, removal.run_id)
                store.confirm_removal(removal.run_id)
                going.append(removal.run_id)
    if as_json:
        result_json({"dry_run": dry_run, "runs": going})
        return
    for run_id in going:
        result(f"{'would go' if dry_run else 'removed'}: {run_id}")
    if not going:
        note("No run is old enough, settled, and not needed by one that stays.")


def _is_open_again(store: Store, run_id: str) -> bool:
    """Whether a run of that name was opened since: its files have the same places as those of the one that went."""
    from collection_pipeline.engine.store import UnknownRunError

    try:
        store.graph_of(run_id)
    except UnknownRunError:
        return False
    return True
