"""`collect runs`: the newest runs, a line each. Loads no Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.state_table import StateTable, look
from collection_pipeline.cli.terminal import columns, console, is_terminal, note, result, result_json, table

if TYPE_CHECKING:
    from collection_pipeline.engine.collection import Collection

HEAD = ("run", "state", "credits", "data", "jobs")


@click.command()
@click.option("--last", metavar="N", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array of what `collect status --json` prints.")
def runs(*, last: int, as_json: bool) -> None:
    """List the newest runs, newest first: what state each is in, what it spent, and how old its data is.

    Ends with 0 also when jobs of them failed: `collect status RUN_ID` judges a run.
    """
    settings = opening.settings()
    collection = opening.kept_collection(settings) if opening.is_begun(settings) else None
    run_ids = [] if collection is None else collection.store.newest_runs(last)
    found = [] if collection is None else list(_look(collection, run_ids))
    if not run_ids:
        note("There is no run yet. Begin with: collect run")
    if as_json:
        result_json([each.to_json() for each in found])
    elif found:
        _print([_cells(each) for each in found])


def _look(collection: Collection, run_ids: Sequence[str]) -> Iterator[StateTable]:
    from collection_pipeline.engine.store import StoreError

    for run_id in run_ids:
        try:
            yield look(opening.of_run(collection, run_id), run_id)
        except StoreError as error:  # one run that cannot be read hides no other
            note(f"Run {run_id} is left out. {error}")


def _print(rows: Sequence[Sequence[str]]) -> None:
    if is_terminal():
        screen = console()
        screen.print(table(HEAD, rows, screen.width))
    else:
        result("\n".join(columns(HEAD, rows)))


def _cells(run: StateTable) -> Sequence[str]:
    view, counts = run.found.view, run.job_counts()
    jobs = ", ".join(f"{count} {word}" for word, count in counts.items())
    return (view.run_id, run.state, str(view.credits.charged), run.age, jobs)
