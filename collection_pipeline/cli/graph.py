"""`collect graph`: what depends on what, by which policy, and why."""

from __future__ import annotations

import click

from collection_pipeline.cli.terminal import result


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "json", "markdown"]),
    default="text",
    show_default=True,
    help="For people, for a picture, for a machine, or as the page docs/DEPENDENCIES.md.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
def graph(form: str) -> None:
    """Show the jobs and their edges: policy, on_rerun and why."""
    from collection_pipeline.definitions import GRAPH
    from collection_pipeline.engine.words.picture import dependencies_page, graph_json, graph_mermaid, graph_text

    make = {"text": graph_text, "mermaid": graph_mermaid, "json": graph_json, "markdown": dependencies_page}[form]
    result(make(GRAPH).rstrip("\n"))
