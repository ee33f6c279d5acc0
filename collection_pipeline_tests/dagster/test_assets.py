"""What `collection_asset` makes of a function, what it refuses, and what becomes of a body that returns nonsense."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from collection_pipeline.engine.checks import AnyVolume, Check, Coverage, Present, Volume
from collection_pipeline.engine.declarations import DeclarationError
from collection_pipeline.engine.jobs.asset import RUNS, collection_asset, graph_of
from collection_pipeline.engine.jobs.job import Input, JobContext, Losses, Product
from collection_pipeline.engine.planning.edges import Edge, Policy
from collection_pipeline.engine.planning.graph import GraphError
from collection_pipeline.engine.runs.launches import FETCH, FETCH_MISSING
from collection_pipeline.sources.contract import Admit, ApiRequest, Exchange, Source, TransientSourceError
from collection_pipeline_tests.dagster.in_process import QUIET, InProcess, failures
from collection_pipeline_tests.dagster.small_collection import DATASETS, definitions, rows

RUN = "2026-03-02"
SEARCH = DATASETS["search_results"]
ANY = AnyVolume(why="it is about something else")
RETRIES = dg.RetryPolicy(max_retries=1)


def edge(upstream: str, policy: Policy = "hard") -> Edge:
    return Edge(upstream, policy=policy, on_rerun="follow", why="for the test")


def asset_of(body: Callable[[JobContext], Any], *checks: Check) -> dg.AssetsDefinition:
    def search_results(job: JobContext) -> Any:
        """Whatever the test returns."""
        return body(job)

    return collection_asset(dataset=SEARCH, checks=[ANY, *checks], retry_policy=RETRIES)(search_results)


class TestDeclarations:
    def test_every_asset_says_how_many_rows_are_too_few_or_why_any_number_is_fine(self) -> None:
        def search_results(job: JobContext) -> None: ...

        says = r"^test_assets\.py:\d+: search_results does not say how many rows .*AnyVolume\(why=…\)"
        with pytest.raises(DeclarationError, match=says):
            collection_asset(dataset=SEARCH, checks=[Coverage(hard=0.5)])(search_results)

    @pytest.mark.parametrize(
        ("checks", "says"),
        [
            ([Coverage(hard=0.5), Coverage(hard=0.9)], "has the check coverage twice"),
            ([Present("feature")], "checks a column 'feature'. Did you mean 'feature_id'?"),
        ],
    )
    def test_checks_that_could_not_be_judged_after_paying_are_refused(self, checks: Sequence[Check], says: str) -> None:
        with pytest.raises(DeclarationError, match=rf"^test_assets\.py:\d+: search_results {re.escape(says)}"):
            asset_of(lambda _: None, *checks)

    def test_a_data_set_is_called_like_its_job(self) -> None:
        def search(job: JobContext) -> None: ...

        with pytest.raises(DeclarationError, match="search has the data set search_results"):
            collection_asset(dataset=SEARCH, checks=[ANY])(search)

    def test_a_body_takes_at_least_its_job(self) -> None:
        def search_results() -> None: ...

        with pytest.raises(GraphError, match=r"^test_assets\.py:\d+: search_results takes no argument"):
            collection_asset(dataset=SEARCH, checks=[ANY])(search_results)

    def test_an_edge_without_an_argument_is_refused(self) -> None:
        def details(job: JobContext, serch: Any) -> None: ...

        with pytest.raises(GraphError, match=r"details has an edge from search but no argument of that name.*serch"):
            collection_asset(dataset=SEARCH, edges=[edge("search")], checks=[ANY])(details)

    @pytest.mark.parametrize("annotation", [Input, "Input"])
    def test_an_argument_that_may_be_none_says_so(self, annotation: Any) -> None:
        def details(job: JobContext, search: Any) -> None: ...

        details.__annotations__["search"] = annotation
        declare = collection_asset(dataset=SEARCH, edges=[edge("search", "optional")], checks=[ANY])
        with pytest.raises(
            GraphError, match=r"details may run without search, by this edge\. Write search: Input \| None"
        ):
            declare(details)

    def test_an_argument_without_an_edge_is_refused(self) -> None:
        def details(job: JobContext, search: Any, news: Any) -> None: ...

        with pytest.raises(GraphError, match="details takes news but declares no edge from it"):
            collection_asset(dataset=SEARCH, edges=[edge("search")], checks=[ANY])(details)

    def test_a_plain_dependency_has_no_policy_and_is_refused(self) -> None:
        @dg.asset(deps=["search"])
        def details() -> None: ...

        with pytest.raises(GraphError, match="details depends on search without policy, on_rerun and why"):
            graph_of([details])


def test_an_asset_of_somebody_elses_automation_may_depend_on_the_report(world: InProcess) -> None:
    @dg.asset(deps=["daily_report"], partitions_def=RUNS, automation_condition=dg.AutomationCondition.eager())
    def archive() -> None: ...

    defs = dg.Definitions.merge(world.defs, dg.Definitions(assets=[archive]))
    dg.Definitions.validate_loadable(defs)

    before = dg.evaluate_automation_conditions(defs, world.instance)
    assert before.total_requested == 0
    world.morning(RUN)
    assert world.statuses(RUN)["daily_report"] == "done", world.reason("daily_report", RUN)
    after = dg.evaluate_automation_conditions(defs, world.instance, cursor=before.cursor)
    assert after.get_requested_partitions(dg.AssetKey("archive")) == {RUN}
    assert "archive" not in world.statuses(RUN)


@pytest.mark.parametrize(("tags", "run_id"), [({"dagster/partition": RUN}, RUN), ({}, "RUN_ID")])
def test_checks_launched_without_their_job_do_nothing_and_say_so(
    world: InProcess, tags: dict[str, str], run_id: str
) -> None:
    """What the UI offers beside each check, with a partition or without."""
    world.instance.add_dynamic_partitions(RUNS.name or "", [RUN])
    volume = dg.AssetCheckKey(dg.AssetKey("search_results"), "volume")
    job = world.repository.get_implicit_global_asset_job_def().get_subset(
        asset_selection=set(), asset_check_selection={volume}
    )
    (told,) = failures(job.execute_in_process(QUIET, world.instance, tags=tags, raise_on_error=False))
    assert told == (
        "Nothing was done: the checks of search_results are judged when the job runs. Materialize search_results, or"
        f" type: collect rerun search_results {run_id}"
    )
    assert world.store.open_runs() == []
    assert world.script.starts("search_results", RUN) == 0


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "given"),
        [
            (lambda _: rows(["0x1"], 1, ""), "DataFrame"),
            (lambda _: [rows(["0x1"], 1, "")], "DataFrame"),
            (lambda _: Product([rows(["0x1"], 1, "")]), "DataFrame"),  # type: ignore[list-item]
            (lambda _: None, "NoneType"),
        ],
    )
    def test_rows_without_losses_are_refused_in_words_and_not_tried_again(
        self, world: InProcess, body: Callable[[JobContext], Any], given: str
    ) -> None:
        calls: Counter[str] = Counter()

        def counted(job: JobContext) -> Any:
            calls["body"] += 1
            return body(job)

        world = world.changed(asset_of(counted))
        (told,) = failures(world.launch(RUN, "search_results"))

        assert f"the body of search_results gave a {given}; let it return (rows, Losses())" in told
        assert world.statuses(RUN) == {"search_results": "failed"}
        assert calls["body"] == 1

    def test_a_body_is_handed_the_settings_of_its_collection(self, world: InProcess) -> None:
        handed = []

        def body(job: JobContext) -> Any:
            handed.append(job.settings)
            return rows(["0x1"], 1, ""), Losses()

        world = replace(world, defs=definitions([asset_of(body)], world.script, settings="of this collection"))
        assert world.launch(RUN, "search_results").success
        assert handed == ["of this collection"]

    def test_a_column_of_another_kind_fails_the_job_before_its_body_pays(self, world: InProcess) -> None:
        def body(job: JobContext) -> Any:
            raise AssertionError("the body ran")

        stored = replace(SEARCH, columns=tuple(replace(column, kind="json") for column in SEARCH.columns))
        world.collection.store.prepare(stored)
        world = world.changed(asset_of(body))
        (told,) = failures(world.launch(RUN, "search_results"))
        assert "is stored as json and now described as" in told

    def test_rows_that_repeat_a_key_are_stored_and_not_usable(self, world: InProcess) -> None:
        world = world.changed(asset_of(lambda _: (rows(["0x1", "0x1"], 1, ""), Losses())))
        (told,) = failures(world.launch(RUN, "search_results"))
        assert "check unique_key failed: 1 row with the key of an earlier one" in told

    def test_rows_of_another_type_are_not_usable(self, world: InProcess) -> None:
        world = world.changed(asset_of(lambda _: (rows(["0x1"], 1, "").astype({"edition": "Int32"}), Losses())))
        (told,) = failures(world.launch(RUN, "search_results"))
        assert "check schema failed: " in told
        assert "edition" in told


def asked_of(source: Source, world: InProcess, enough: float = 0.8) -> InProcess:
    """The same world with one job, which asks `source` four times and counts what cannot be had as missing."""

    def body(job: JobContext) -> tuple[pd.DataFrame, Losses]:
        answers = job.fetch(ApiRequest("search", {"q": name}) for name in "abcd")
        return rows([str(answer.request.params["q"]) for answer in answers], 1, ""), Losses()

    changed = definitions(
        [asset_of(body, Coverage(hard=enough))], world.script, open_source=lambda _moment: nullcontext(source)
    )
    return replace(world, defs=changed)


class FlakySource:
    """Answers every call, except that the first time round two of four are answered."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        first = not self.asked
        self.asked.append([])
        for position, request in enumerate(requests):
            await admit(request)
            self.asked[-1].append(str(request.params["q"]))
            now = datetime.fromisoformat(f"{RUN}T06:00+00:00")
            if first and position >= 2:
                yield Exchange(request, 1, True, now, 1, error=TransientSourceError("busy"))
            else:
                yield Exchange(request, 1, True, now, 1, 200, 0, str(position), request.credits, b"{}")


def test_too_little_coverage_is_tried_again_and_buys_only_the_rest(world: InProcess) -> None:
    source = FlakySource()
    world = asked_of(source, world)
    assert world.launch(RUN, "search_results").success

    assert [sorted(asked) for asked in source.asked] == [["a", "b", "c", "d"], ["c", "d"]]
    assert world.rows("search_results", RUN, 1) == 4
    assert world.view(RUN).credits.charged == 4


def test_an_alert_about_missing_answers_says_how_to_buy_only_those(world: InProcess) -> None:
    source = FlakySource()
    world = asked_of(source, world, enough=0.5)
    assert world.launch(RUN, "search_results").success
    (episode,) = world.store.open_episodes().values()
    assert episode.text.endswith(f". Type: collect rerun search_results {RUN} --missing-only")

    assert world.launch(RUN, "search_results", tags={FETCH: FETCH_MISSING}).success
    assert [sorted(asked) for asked in source.asked] == [["a", "b", "c", "d"], ["c", "d"]]
    assert world.store.open_episodes() == {}


class DeadSource:
    """Answers nothing, ever."""

    def __init__(self) -> None:
        self.calls = 0

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        for request in requests:
            await admit(request)
            self.calls += 1
            now = datetime.fromisoformat(f"{RUN}T06:00+00:00")
            yield Exchange(request, 1, True, now, 1, error=TransientSourceError("no connection to the server"))


def test_a_source_that_answers_nothing_is_the_reason_and_not_the_checks_that_find_no_rows(world: InProcess) -> None:
    source = DeadSource()
    world = asked_of(source, world)
    assert not world.launch(RUN, "search_results").success
    assert source.calls == 8, "what may be over soon is tried again"
    assert "(0 of 4 calls answered: no connection to the server (4 of 4))" in world.reason("search_results", RUN)
    assert world.view(RUN).jobs[0].latest is None, "there was nothing to judge"


def test_a_soft_check_alerts_once_and_is_over_when_a_later_artifact_passes(world: InProcess) -> None:
    tuesday, wednesday = "2026-03-03", "2026-03-04"
    few = {RUN, tuesday}

    def body(job: JobContext) -> tuple[pd.DataFrame, Losses]:
        return rows(["0x1"] if job.run_id in few else ["0x1", "0x2"], 1, job.run_id), Losses()

    def search_results(job: JobContext) -> Any:
        """Fewer rows than wished for, at first."""
        return body(job)

    soft = Volume(min_rows=2, min_share=None, rows_severity="soft")
    world = world.changed(collection_asset(dataset=SEARCH, checks=[soft])(search_results))
    for run_id in (RUN, tuesday):
        assert world.launch(run_id, "search_results").success
    assert world.script.alerts() == ["Alert: check:search_results:volume"]
    (episode,) = world.store.open_episodes().values()
    assert episode.text == (
        f"search_results of {RUN} is published with a warning: check volume: 1 row, at least 2 expected."
        f" See: collect status {RUN}"
    )
    world.launch(wednesday, "search_results")
    assert world.script.alerts()[1:] == ["Over: check:search_results:volume"]


def test_a_report_on_older_data_does_not_alert_beside_the_failure_that_made_it_so(world: InProcess) -> None:
    world.morning(RUN)
    world.tell("detail_pages", "2026-03-03", then="fail")
    world.morning("2026-03-03")
    assert world.checks("daily_report", "2026-03-03")["degraded_inputs"].passed is False
    assert world.script.alerts() == ["Alert: failed:detail_pages", "Alert: skipped:news_mentions"]
