"""What Dagster's own UI is told: what was really read, what was checked, and what was skipped."""

from __future__ import annotations

import dagster as dg
import pytest

from collection_pipeline_tests.dagster.in_process import InProcess

YESTERDAY, TODAY = "2026-03-02", "2026-03-03"


@pytest.fixture
def degraded(world: InProcess) -> InProcess:
    """A day on which details failed: the report stands on yesterday's, and news was skipped."""
    world.morning(YESTERDAY)
    world.tell("detail_pages", TODAY, then="fail")
    world.morning(TODAY)
    return world


def test_the_input_versions_that_dagster_keeps_are_those_that_were_read(degraded: InProcess) -> None:
    read = degraded.materialization("daily_report", TODAY).tags or {}
    assert read["dagster/input_data_version/detail_pages"] == degraded.current("detail_pages", YESTERDAY).content_hash
    assert read["dagster/input_data_version/detail_pages/2026-03-02"] == read["dagster/input_data_version/detail_pages"]
    assert read["dagster/input_data_version/news_mentions"] == "none"
    assert read["dagster/data_version"] == degraded.current("daily_report", TODAY).content_hash


def test_a_materialization_says_what_it_is_and_what_it_was_made_of(degraded: InProcess) -> None:
    shown = degraded.materialization("daily_report", TODAY).metadata
    assert shown["dagster/row_count"].value == 20
    assert shown["version"].value == 1
    assert shown["degraded"].value is True
    assert shown["source"].value == "script"
    assert shown["credits_charged"].value == 0
    as_of = shown["as_of"]
    assert isinstance(as_of, dg.TimestampMetadataValue)
    assert as_of.value == degraded.current("detail_pages", YESTERDAY).as_of.timestamp()
    inputs = shown["inputs"]
    assert isinstance(inputs, dg.TableMetadataValue)
    assert [record.data for record in inputs.records] == [
        {
            "upstream": "detail_pages",
            "run_id": YESTERDAY,
            "version": 1,
            "as_of": "2026-03-02T00:00:00+00:00",
            "policy": "degrade",
        },
        {"upstream": "news_mentions", "run_id": "left out", "version": "", "as_of": "", "policy": "optional"},
    ]
    assert "| `0x0:0x1` | `1` |" in str(shown["preview"].value)
    assert str(shown["report.txt"].value).endswith("2026-03-03/daily_report/v1/report.txt")


def test_checks_are_recorded_for_the_partition_and_degraded_input_is_a_warning(degraded: InProcess) -> None:
    verdicts = degraded.checks("daily_report", TODAY)
    assert {name: (each.passed, each.severity.value) for name, each in verdicts.items()} == {
        "schema": (True, "ERROR"),
        "unique_key": (True, "ERROR"),
        "volume": (True, "WARN"),
        "degraded_inputs": (False, "WARN"),
        "omitted_inputs": (False, "WARN"),
    }
    assert verdicts["degraded_inputs"].description == (
        "detail_pages of 2026-03-02, version 1, data as of 2026-03-02 00:00"
    )


def test_a_check_that_blocks_is_recorded_and_nothing_is_materialized(world: InProcess) -> None:
    world.tell("search_results", TODAY, rows=0)
    world.morning(TODAY)
    assert not world.checks("search_results", TODAY)["feature_id_present"].passed
    assert world.materializations("search_results", TODAY) == []


def test_a_skipped_job_leaves_an_observation_on_its_partition(degraded: InProcess) -> None:
    (observation,) = degraded.observations("news_mentions", TODAY)
    assert (observation.description or "").startswith("skipped: detail_pages failed at 06:00 (the source says no)")


def test_edges_columns_and_windows_are_part_of_the_definitions(world: InProcess) -> None:
    specs = {spec.key.to_user_string(): spec for spec in world.defs.resolve_all_asset_specs()}
    (details, news) = sorted(specs["daily_report"].deps, key=lambda dep: dep.asset_key)
    assert details.metadata is not None
    assert news.metadata is not None
    assert details.metadata["policy"] == "degrade"
    assert news.metadata["policy"] == "optional"
    assert "- `news_mentions`: optional, follow. one section" in (specs["daily_report"].description or "")
    columns = specs["daily_report"].metadata["dagster/column_schema"]
    assert [column.name for column in columns.columns] == ["feature_id", "edition", "made_of"]
