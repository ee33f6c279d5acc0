"""`collect status`: the state table of a run, and who waits for whom and why. Loads no Dagster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.opening import RUN_ID
from collection_pipeline.cli.state_table import StateTable, look
from collection_pipeline.cli.terminal import console, is_terminal, note, result_json

if TYPE_CHECKING:
    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.run_ids import RunId

LOOK_EVERY_S = 1.0


@click.command()
@click.argument("run_id", type=RUN_ID, required=False)
@click.option("--watch", is_flag=True, help="Look again every second until the run is settled.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; with --watch one a line whenever it changes.")
@click.pass_context
def status(ctx: click.Context, *, run_id: RunId | None, watch: bool, as_json: bool) -> None:
    """Show who waits for whom and why, what failed, what degraded, and what to type next.

    Without RUN_ID: the newest run. Only the database is asked, so a job in Dagster's queue counts as pending.
    """
    settings = opening.settings()
    begun = run_id is not None or opening.is_begun(settings)
    collection = opening.kept_collection(settings, run_id) if begun else None
    newest = [] if collection is None or run_id is not None else collection.store.newest_runs(1)
    name = next(iter(newest), None) if run_id is None else run_id.text
    if collection is None or name is None:
        note("There is no run yet. Begin with: collect run")
        if as_json:
            result_json(None)
        return
    found = _watch(collection, name, as_json=as_json) if watch else look(opening.of_run(collection, name), name)
    if not watch:
        found.print(as_json=as_json)
    ctx.exit(found.exit_code)


def _watch(collection: Collection, run_id: str, *, as_json: bool) -> StateTable:
    """Show the run until it is settled: on a terminal one table kept up to date, else a block for each change."""
    if is_terminal() and not as_json:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False, transient=True) as live:
            found = look(opening.of_run(collection, run_id), run_id)
            while not found.settled:
                live.update(found.renderable(live.console.width), refresh=True)
                time.sleep(LOOK_EVERY_S)
                found = look(opening.of_run(collection, run_id), run_id)
        found.print(as_json=False)
        return found
    shown = None
    while True:
        found = look(opening.of_run(collection, run_id), run_id)
        if shown is None or found.to_json() != shown.to_json():
            found.print(as_json=as_json)
            shown = found
        if found.settled:
            return found
        time.sleep(LOOK_EVERY_S)
