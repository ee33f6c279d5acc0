"""The template's own four assets against the emulator over real HTTP, on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from collection_pipeline.assets import ASSETS
from collection_pipeline.automation import collection_job
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE, graph_of
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.runs.launches import FETCH, FETCH_MISSING, RUN_ID
from collection_pipeline.engine.runs.standing import standing
from collection_pipeline.engine.store.database import Database
from collection_pipeline.resources import collection
from collection_pipeline.settings import settings
from collection_pipeline.sources.contract import EMULATOR
from collection_pipeline.sources.emulator import EmulatorOptions, embedded

RUN = "2026-11-29"
QUERIES = """
[[query]]
q = "airports in Iceland"
gl = "is"

[[query]]
q = "Reykjavik airport"
gl = "is"
"""
KEPT = "SELECT feature_id, CAST(queries AS TEXT) AS queries FROM detail_pages"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass
class Template:
    """The template's definitions on one database, executed in this process."""

    instance: dg.DagsterInstance
    database: Database
    opened: ExitStack
    work: Collection = field(init=False)

    def __post_init__(self) -> None:
        self.configure()

    def configure(self) -> None:
        """Work by the settings that the environment has now. Every store that is opened is closed after the test."""
        settings.cache_clear()
        made = collection(graph_of(ASSETS), settings())
        self.work = replace(made, open_store=lambda: self.opened.enter_context(made.open_store()))

    def materialize(
        self, run_id: str = RUN, tags: Mapping[str, str] | None = None, jobs: Sequence[str] = ()
    ) -> dg.ExecuteInProcessResult:
        self.instance.add_dynamic_partitions(RUN_ID, [run_id])
        defs = dg.Definitions(
            assets=ASSETS,
            jobs=[collection_job],
            resources={COLLECTION_RESOURCE: self.work},
            executor=dg.in_process_executor,
        )
        return defs.resolve_job_def(collection_job.name).execute_in_process(
            instance=self.instance,
            partition_key=run_id,
            run_config=QUIET,
            raise_on_error=False,
            tags=dict(tags or {}),
            asset_selection=[dg.AssetKey(job_id) for job_id in jobs] or None,
        )

    def rows(self, statement: str, **values: object) -> list[sa.Row[Any]]:
        with self.database.read() as connection:
            return list(connection.execute(sa.text(statement), values))

    def statuses(self, run_id: str = RUN) -> dict[object, object]:
        found = self.rows("SELECT job_id, status FROM jobs WHERE run_id = :run_id", run_id=run_id)
        return {row.job_id: row.status for row in found}


@pytest.fixture
def template(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Template]:
    (tmp_path / "queries.toml").write_text(QUERIES, encoding="utf-8")
    monkeypatch.setenv("COLLECTION_QUERIES", str(tmp_path / "queries.toml"))
    monkeypatch.setenv("COLLECTION_DATABASE_URL", database_url)
    with dg.DagsterInstance.ephemeral() as instance, closing(Database(database_url)) as database, ExitStack() as opened:
        yield Template(instance, database, opened)


def test_every_row_of_the_view_leads_to_the_call_that_bought_it(template: Template) -> None:
    assert template.materialize().success

    found = template.rows("SELECT * FROM search_results WHERE run_id = :run_id", run_id=RUN)
    paid = {
        (row.request_id, row.endpoint): row
        for row in template.rows(
            "SELECT request_id, endpoint, credits_charged, response FROM requests WHERE run_id = :run_id", run_id=RUN
        )
    }
    assert found
    for row in found:
        call = paid[row.request_id, "maps_search"]
        assert call.credits_charged == 2
        answered = json.loads(bytes(call.response))
        assert answered["request_id"] == row.request_id
        assert row.feature_id in {place["feature_id"] for place in answered["places"]}


def test_a_place_that_two_queries_find_is_bought_once_and_keeps_both(template: Template) -> None:
    template.materialize()

    twice = template.rows(
        "SELECT feature_id FROM search_results WHERE run_id = :run_id GROUP BY feature_id HAVING count(*) = 2",
        run_id=RUN,
    )
    bought = [
        json.loads(row.params)["feature_id"]
        for row in template.rows("SELECT params FROM requests WHERE endpoint = 'maps_detail'")
    ]
    kept = {row.feature_id: json.loads(row.queries) for row in template.rows(KEPT)}
    assert twice
    assert len(bought) == len(set(bought)) == len(kept)
    assert all(len(kept[row.feature_id]) == 2 for row in twice)


def test_the_report_is_a_page_a_table_and_a_workbook_and_says_what_it_stands_on(
    template: Template, tmp_path: Path
) -> None:
    day = "2020-02-03"
    template.materialize(day)

    folder = tmp_path / "data" / "reports" / day / "daily_report" / "v1"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert {path.name for path in folder.iterdir()} == {"report.html", "places.csv", "places.xlsx", "picture.svg"}
    collected = str(template.rows("SELECT max(published_at) FROM artifacts WHERE job_id = 'news_mentions'")[0][0])[:10]
    english, chinese = f"data as of {day}, collected on {collected}", f"数据截至 {day}，采集于 {collected}"
    assert page.index(english) < page.index(chinese) < page.index("<h1")
    assert "emulator (synthetic)" in page
    request_id = template.rows("SELECT request_id FROM requests WHERE endpoint = 'maps_detail' ORDER BY id")[0][0]
    assert str(request_id) in page


def test_dagster_shows_rows_version_age_source_credits_inputs_and_the_picture(template: Template) -> None:
    result = template.materialize()

    shown = {
        event.asset_key.to_user_string(): event.materialization.metadata
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }
    details, report = shown["detail_pages"], shown["daily_report"]
    count = template.rows("SELECT count(*) FROM detail_pages")[0][0]
    assert details["dagster/row_count"].value == count
    assert details["version"].value == 1
    assert details["credits_charged"].value == 2 * int(str(count))
    assert details["source"].value == "emulator (synthetic)"
    assert details["coverage"].value == 1.0
    inputs = details["inputs"]
    assert isinstance(inputs, dg.TableMetadataValue)
    assert [record.data["upstream"] for record in inputs.records] == ["search_results"]
    (queries,) = (check for check in result.get_asset_check_evaluations() if check.check_name == "fruitful_queries")
    assert (queries.passed, queries.metadata["asked"].value) == (True, 2)
    assert "data:image/svg+xml;base64," in str(report["picture"].value)
    assert {"report.html", "places.csv", "places.xlsx"} <= report.keys()


def test_search_that_succeeds_with_nothing_found_fails_and_everything_behind_it_waits(
    template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTION_EMULATOR_FAULTS", "maps_search=empty_result")
    template.configure()

    assert not template.materialize().success
    behind = dict.fromkeys(("detail_pages", "news_mentions", "daily_report"), "pending")
    assert template.statuses().items() >= {"search_results": "failed", **behind}.items()
    assert template.rows("SELECT * FROM search_results") == []
    assert template.rows("SELECT usable FROM artifacts WHERE job_id = 'search_results'") == [(False,)]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("unauthorized", "unauthorized"),
        ("out_of_credits", "insufficient credits"),
        ("malformed_body", "0 of 2 calls answered"),
        ("empty_result", "feature_id_present"),
    ],
)
def test_a_fault_is_named_and_leaves_nothing_half_made(
    template: Template, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    monkeypatch.setenv("COLLECTION_EMULATOR_FAULTS", f"maps_search={fault}")
    template.configure()

    assert not template.materialize().success
    (reason,) = template.rows("SELECT reason FROM jobs WHERE job_id = 'search_results'")[0]
    assert words in str(reason)
    assert template.rows("SELECT * FROM artifacts WHERE usable") == []


def test_synthetic_data_stays_labelled_after_a_change_of_source(
    template: Template, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    template.materialize("2026-11-28")
    monkeypatch.setenv("SERPBASE_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SERPBASE_API_KEY", "not-a-real-key")
    template.configure()
    gateway = template.work
    run_id = RunId.parse("2026-11-29")
    gateway.store.open_run(run_id, gateway.timezone, gateway.graph, gateway.now())
    with gateway.store.database.write() as connection:
        failed = "UPDATE jobs SET status = 'failed', outcome = 'failed', attempted = '{}' WHERE run_id = :run_id"
        connection.execute(sa.text(f"{failed} AND job_id = 'search_results'"), {"run_id": run_id.text})

    assert template.materialize(run_id.text, jobs=["daily_report"]).success
    page = (tmp_path / "data/reports/2026-11-29/daily_report/v1/report.html").read_text(encoding="utf-8")
    assert "emulator (synthetic)" in page
    assert "gateway" not in page
    assert "data as of 2026-11-28 (yesterday" in page


@contextmanager
def a_key(monkeypatch: pytest.MonkeyPatch, template: Template) -> Iterator[str]:
    """The settings name a source that counts as real, at the address that is given; after it they do not."""
    with embedded(EmulatorOptions(day=date(2026, 11, 29))) as server, monkeypatch.context() as settings:
        settings.setenv("SERPBASE_BASE_URL", server.base_url)
        settings.setenv("SERPBASE_API_KEY", server.api_key)
        template.configure()
        yield server.base_url
    template.configure()


@pytest.mark.parametrize(
    ("run_id", "job_id", "meanwhile"),
    [
        ("2026-11-29", "detail_pages", "SELECT 1"),
        ("2026-11-29", "search_results", "SELECT 1"),
        ("2026-11-29", "search_results", "UPDATE artifacts SET is_current = false, retracted_at = published_at"),
        ("2026-11-30", "search_results", "SELECT 1"),
        ("2026-11-27", "search_results", "SELECT 1"),
    ],
    ids=["repair", "rerun", "rerun-of-retracted", "next-day", "backfill"],
)
def test_the_emulator_does_not_go_on_where_a_real_source_has_answered(
    run_id: str, job_id: str, meanwhile: str, template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody repairs a run in a shell that has no key, or a scheduler's environment has lost it."""
    with a_key(monkeypatch, template) as address:
        assert template.materialize(jobs=["search_results", "detail_pages"]).success
    with template.work.store.database.write() as connection:
        connection.execute(sa.text(meanwhile))

    assert not template.materialize(run_id, jobs=[job_id]).success
    [(reason,)] = template.rows("SELECT reason FROM jobs WHERE run_id = :r AND job_id = :j", r=run_id, j=job_id)
    assert str(reason).startswith(
        f"the last answers here are of gateway {address}, and now the emulator would be asked."
    )
    assert {row.run_id for row in template.rows("SELECT run_id FROM artifacts")} == {"2026-11-29"}
    assert template.rows("SELECT * FROM requests WHERE source = :emulator", emulator=EMULATOR) == []


def test_a_real_source_is_not_paid_to_look_up_what_the_emulator_made_up(
    template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert template.materialize(jobs=["search_results"]).success
    with a_key(monkeypatch, template) as address:
        assert not template.materialize(jobs=["detail_pages"]).success
        [(reason,)] = template.rows("SELECT reason FROM jobs WHERE job_id = 'detail_pages'")
        assert str(reason).startswith(f"what it reads is of the emulator, and gateway {address} would be paid")
        assert template.materialize(jobs=["search_results", "detail_pages"]).success


def test_a_second_run_says_what_changed_since_the_first(template: Template, tmp_path: Path) -> None:
    template.materialize("2026-11-28")
    template.materialize("2026-11-29")

    changes = {row[0] for row in template.rows("SELECT change FROM daily_report WHERE run_id = :r", r="2026-11-29")}
    assert changes <= {"new", "up", "down", "same"}
    assert "2026-11-28" in (tmp_path / "data/reports/2026-11-29/daily_report/v1/report.html").read_text(
        encoding="utf-8"
    )


def test_a_repair_buys_only_the_answers_that_are_missing(template: Template, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTION_EMULATOR_FAULTS", "maps_detail=malformed_body:0.5")
    template.configure()
    template.materialize()
    assert template.statuses()["detail_pages"] == "failed"
    found = standing(template.work, RUN)
    assert found.explanation.next_command("detail_pages") == f"collect rerun detail_pages {RUN} --missing-only"
    answered = template.rows("SELECT fingerprint FROM requests WHERE endpoint = 'maps_detail' AND kind = 'ok'")

    monkeypatch.delenv("COLLECTION_EMULATOR_FAULTS")
    template.configure()
    assert template.materialize(tags={FETCH: FETCH_MISSING}, jobs=["detail_pages"]).success
    bought = template.rows("SELECT fingerprint FROM requests WHERE endpoint = 'maps_detail' AND kind = 'ok'")
    assert len(answered) < len(bought) == len(set(bought)) == template.rows("SELECT count(*) FROM detail_pages")[0][0]
