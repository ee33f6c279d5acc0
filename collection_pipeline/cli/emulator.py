"""`collect emulator`: the emulator as a server of its own, with faults."""

from __future__ import annotations

from datetime import datetime

import click

from collection_pipeline.cli.group import Refusal
from collection_pipeline.cli.terminal import note, result


class _EmulatorCommand(click.Command):
    """Help that ends with the faults there are, read where they are defined."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        from collection_pipeline.sources.emulator.faults import FAULTS, TARGETS

        with formatter.section("Faults"):
            formatter.write_text("endpoint=fault[:share][@condition=value…], separated by commas:")
            formatter.write_text("maps_detail=upstream_error:0.3, maps_search=empty_result@first=1, *=slow@seconds=2")
            formatter.write_dl([("endpoint", ", ".join(TARGETS)), ("fault", ", ".join(FAULTS))])
            formatter.write_text(
                "While it runs: curl -X PUT --data 'maps_detail=rate_limit' http://127.0.0.1:8765/emulator/faults"
            )
            formatter.write_text("The embedded emulator of `collect run` takes them from COLLECTION_EMULATOR_FAULTS.")


@click.command(cls=_EmulatorCommand)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen at; it asks nobody for a password."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option("--faults", default="", metavar="TEXT", help="What goes wrong; see below.")
@click.option(
    "--latency", type=click.IntRange(0, 60_000), default=0, show_default=True, metavar="MS", help="Of every answer."
)
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="The day that the data speaks of; default: today.")
@click.option("--seed", type=int, default=0, show_default=True, help="Other seeds, other data and other chances.")
@click.option("--credits", "balance", type=click.IntRange(0), help="Balance of the account; default: without end.")
def emulator(
    *, host: str, port: int, faults: str, latency: int, day: datetime | None, seed: int, balance: int | None
) -> None:
    """Serve SerpBase's wire format on this machine, filled with real airports, until interrupted."""
    from collection_pipeline.sources.emulator import EmulatorOptions, FaultSyntaxError, parse_faults, serve

    try:
        rules = parse_faults(faults)
    except FaultSyntaxError as error:
        raise Refusal(str(error)) from error
    options = EmulatorOptions(
        seed=seed, day=day.date() if day else None, latency_ms=latency, credits=balance, faults=rules
    )
    try:
        serve(options, host=host, port=port, on_ready=_announce)
    except OSError as error:
        raise Refusal(f"The emulator cannot listen at {host}, port {port}: {error.strerror}. Try --port 0.") from error


def _announce(base_url: str) -> None:
    result(f"The emulator listens at {base_url}. Its data is synthetic. Ctrl-C ends it.")
    note(f"Use it: SERPBASE_BASE_URL={base_url} SERPBASE_API_KEY=any-key COLLECTION_DATA=data/trial collect run")
