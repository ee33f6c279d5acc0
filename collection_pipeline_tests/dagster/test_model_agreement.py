"""The same days in the plain model that the planner is proved on, and on a real Dagster instance: they must agree.

Compared after every step: what was requested, every status, every current version, and what each was made of.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import pytest

from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline_tests.dagster.in_process import InProcess
from collection_pipeline_tests.engine.model import DagsterRun, World

MONDAY, TUESDAY, WEDNESDAY = "2026-03-02", "2026-03-03", "2026-03-04"

SEARCH, DETAILS, NEWS, REPORT = "search_results", "detail_pages", "news_mentions", "daily_report"

Ending = Literal["succeeded", "unusable", "failed"]


@dataclass
class Both:
    """Does everything twice, and compares."""

    real: InProcess
    model: World
    endings: dict[tuple[str, str], Ending] = field(default_factory=dict)

    def has(self, job_id: str, run_id: str, ending: Ending, edition: int = 1) -> None:
        """From now on a job of a run ends like this, with this edition of the outside data."""
        self.endings[job_id, run_id] = ending
        self.real.tell(
            job_id,
            run_id,
            rows=0 if ending == "unusable" else 20,
            then="fail" if ending == "failed" else "succeed",
            edition=edition,
        )
        if run_id in self.model.rows:
            self.model.rows[run_id][job_id].edition = edition - 1

    def morning(self, run_id: str) -> None:
        self.real.morning(run_id, until_settled=False)
        self.model.now = datetime.fromisoformat(f"{run_id}T06:00").replace(tzinfo=UTC)
        self._play(self.model.launch(run_id, list(self.model.graph.jobs), automatic=True))
        self.settle(run_id)

    def launch(self, run_id: str, *job_ids: str) -> None:
        """A person launches jobs by hand."""
        self.real.launch(run_id, *job_ids)
        self._play(self.model.launch(run_id, job_ids, automatic=False))
        self.settle(run_id)

    def retract(self, job_id: str, run_id: str) -> None:
        if self.real.job(job_id, run_id).current is not None:
            self.real.store.retract(job_id, run_id, None, "wrong", self.real.script.now())
        self.model.retract(run_id, job_id)
        self.settle()

    def settle(self, launched: str | None = None) -> None:
        """Ticks on both sides until neither requests anything; then everything has to be equal.

        Of a run that was `launched` where launches carry on, the real ticks have nothing left to request.
        """
        carried_on = launched if self.real.carries_on else None
        requested = []
        for _ in range(20):
            due = [run for run_id in sorted(self.model.rows) if (run := self.model.tick(run_id)) is not None]
            if not due:
                break
            requested += [(run.run_id, run.job_ids) for run in due]
            for run in due:
                self._play(run)
        ticked = [(run_id, frozenset(jobs)) for run_id, jobs in self.real.settle()]
        assert ticked == [each for each in requested if each[0] != carried_on]
        for run_id, jobs in self.model.rows.items():
            for job_id, row in jobs.items():
                found = self.real.job(job_id, run_id)
                current = found.current.artifact if found.current is not None else None
                made_of = (
                    {each.upstream: _name(each.artifact) for each in found.current.inputs} if found.current else {}
                )
                standing = row.standing
                assert found.status == row.shown, (job_id, run_id)
                assert _name(current) == _name(row.current)
                if current is not None and standing is not None:
                    assert (current.degraded, current.as_of) == (standing.artifact.degraded, standing.artifact.as_of)
                    assert made_of == {upstream: _name(artifact) for upstream, artifact in standing.inputs.items()}

    def _play(self, run: DagsterRun) -> None:
        """Let a Dagster run of the model go through its steps."""
        while run.dagster_run_id in self.model.dagster_runs:
            job_id = self.model.startable(run)[0]
            if self.model.start(run, job_id) == "started":
                self.model.finish(run, job_id, self.endings.get((job_id, run.run_id), "succeeded"))


def _name(artifact: Artifact | None) -> tuple[str, str, int] | None:
    return None if artifact is None else (artifact.job_id, artifact.run_id, artifact.version)


@pytest.fixture(params=["by ticks", "by carrying on"])
def both(world: InProcess, request: pytest.FixtureRequest) -> Both:
    real = world.carrying_on() if request.param == "by carrying on" else world
    return Both(real, World(real.collection.graph))


def details_are_down_and_come_back(both: Both) -> None:
    both.morning(MONDAY)
    both.has(DETAILS, TUESDAY, "failed")
    both.morning(TUESDAY)
    both.has(DETAILS, TUESDAY, "succeeded")
    both.launch(TUESDAY, DETAILS)


def search_is_empty_and_repaired(both: Both) -> None:
    both.morning(MONDAY)
    both.has(SEARCH, TUESDAY, "unusable")
    both.morning(TUESDAY)
    both.launch(TUESDAY, DETAILS)
    both.has(SEARCH, TUESDAY, "succeeded")
    both.launch(TUESDAY, SEARCH)


def search_is_rerun_with_equal_and_with_other_data(both: Both) -> None:
    both.morning(MONDAY)
    both.launch(MONDAY, SEARCH)
    both.has(SEARCH, MONDAY, "succeeded", edition=2)
    both.launch(MONDAY, SEARCH)


def news_is_down_and_an_old_day_is_made_up_for(both: Both) -> None:
    both.has(NEWS, TUESDAY, "failed")
    both.has(DETAILS, TUESDAY, "failed")
    both.morning(TUESDAY)
    both.launch(MONDAY, SEARCH, DETAILS, NEWS, REPORT)
    both.has(DETAILS, TUESDAY, "succeeded")
    both.launch(TUESDAY, DETAILS)


def yesterday_is_retracted_under_a_degraded_report(both: Both) -> None:
    both.morning(MONDAY)
    both.morning(TUESDAY)
    both.has(DETAILS, WEDNESDAY, "failed")
    both.morning(WEDNESDAY)
    both.retract(DETAILS, TUESDAY)
    both.launch(TUESDAY, DETAILS)


@pytest.mark.parametrize(
    "story",
    [
        details_are_down_and_come_back,
        search_is_empty_and_repaired,
        search_is_rerun_with_equal_and_with_other_data,
        news_is_down_and_an_old_day_is_made_up_for,
        yesterday_is_retracted_under_a_degraded_report,
    ],
)
def test_model_and_dagster_agree_on_a_story(both: Both, story: Callable[[Both], None]) -> None:
    story(both)


@pytest.mark.parametrize("seed", [1, 2])
def test_model_and_dagster_agree_on_whatever_happens(both: Both, seed: int) -> None:
    chance = random.Random(seed)
    both.morning(MONDAY)
    both.morning(TUESDAY)
    for edition in range(2, 10):
        job_id, run_id = chance.choice([SEARCH, DETAILS, NEWS, REPORT]), chance.choice([MONDAY, TUESDAY])
        if chance.random() < 0.25:
            both.retract(job_id, run_id)
            continue
        endings: list[Ending] = ["succeeded", "succeeded", "failed"]
        both.has(job_id, run_id, chance.choice(endings), edition=chance.choice([1, edition]))
        both.launch(run_id, job_id)
