"""`collect runs`: the newest runs, a line each. Loads no Dagster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.state_table import HEAD as HEAD_OF_RUN
from collection_pipeline.cli.state_table import StateTable, look
from collection_pipeline.cli.terminal import columns, console, is_terminal, note, result, result_json, table

HEAD = ("run", "state", "credits", "data as of", "jobs")


@click.command()
@click.option("--last", metavar="N", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array of what `collect status --json` prints.")
def runs(*, last: int, as_json: bool) -> None:
    """List the newest runs, newest first: what state each is in, what it spent, and how old its data is."""
    settings = opening.settings()
    collection = opening.kept_collection(settings) if opening.is_begun(settings) else None
    names = [] if collection is None else collection.store.newest_runs(last)
    if collection is None or not names:
        note("There is no run yet. Begin with: collect run")
    found = [] if collection is None else [look(opening.of_run(collection, name), name) for name in names]
    if as_json:
        result_json([each.to_json() for each in found])
    elif found:
        _print([tuple(_cells(each)) for each in found])


def _print(rows: list[tuple[str, ...]]) -> None:
    if is_terminal():
        screen = console()
        screen.print(table(HEAD, rows, screen.width))
    else:
        result("\n".join(columns(HEAD, rows)))


def _cells(run: StateTable) -> Iterator[str]:
    view = run.found.view
    yield view.run_id
    yield run.state
    yield str(view.credits.charged)
    yield run.age.removeprefix("data as of ")
    yield ", ".join(f"{count} {word}" for word, count in Counter(map(_word, run.rows())).items())


def _word(cells: tuple[str, ...]) -> str:
    """The one word for a job, so that the counts add up: what failed or runs, else what is remarkable about it."""
    status, *marks = cells[HEAD_OF_RUN.index("status")].split(", ")
    return status if status in ("failed", "running") or not marks else marks[-1]
