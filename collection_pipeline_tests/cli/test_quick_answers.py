"""Help, version and status answer at once: they load neither Dagster nor data frames."""

from __future__ import annotations

import pytest

from collection_pipeline_tests.cli.desk import Desk

HEAVY = {"dagster", "numpy", "pandas", "pandera", "pyarrow", "aiohttp", "starlette", "uvicorn", "apprise"}


@pytest.mark.parametrize("command", ["--help", "--version", "run --help", "status --help", "prune --help"])
def test_help_and_version_load_no_database_either(desk: Desk, command: str) -> None:
    done, loaded = desk.collect_afresh(*command.split())
    assert done.code == 0
    assert "click" in loaded
    assert not loaded & {*HEAVY, "sqlalchemy", "rich"}


def test_help_says_what_the_exit_codes_mean(desk: Desk) -> None:
    words = " ".join(desk.collect("--help").out.split())
    assert "1 something failed or is blocked" in words
    assert "2 wrong use or configuration, nothing was written" in words


@pytest.mark.parametrize("options", [[], ["--json"], ["--watch"]])
def test_status_of_no_run_says_how_to_begin(desk: Desk, options: list[str]) -> None:
    done, loaded = desk.collect_afresh("status", *options)
    assert done.code == 0
    assert "There is no run yet. Begin with: collect run" in done.err
    assert done.out == ("null\n" if "--json" in options else "")
    assert "sqlalchemy" in loaded
    assert not loaded & HEAVY
