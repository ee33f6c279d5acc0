"""Ctrl-C while Dagster executes a run: no further job is begun, and what only waits, perhaps for hours, is left."""

from __future__ import annotations

import io
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from collection_pipeline.automation import collection_job
from collection_pipeline.cli.instance import open_instance
from collection_pipeline.cli.progress import PlainLines
from collection_pipeline.cli.session import Session
from collection_pipeline.engine.checks import AnyVolume
from collection_pipeline.engine.jobs.asset import collection_asset
from collection_pipeline.engine.jobs.job import JobContext, Losses, Part
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.runs.interrupts import noted, taken_while
from collection_pipeline.engine.runs.launches import PARTITION, RUN_ID
from collection_pipeline.sources.contract import TransientSourceError
from collection_pipeline_tests.cli.desk import Desk
from collection_pipeline_tests.dagster.in_process import InProcess, in_process
from collection_pipeline_tests.dagster.small_collection import DATASETS, definitions, rows

RUN = "2026-11-29"


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def _interrupt_and_wait() -> None:
    _interrupt()
    threading.Event().wait(30)


class TestSignals:
    @pytest.fixture
    def noticed(self) -> Iterator[threading.Event]:
        """As Dagster handles interrupts between two steps."""
        came = threading.Event()
        before = signal.signal(signal.SIGINT, lambda *_: came.set())
        yield came
        signal.signal(signal.SIGINT, before)

    def test_an_interrupt_while_a_step_waits_is_taken_at_once(self, noticed: threading.Event) -> None:
        with noted(), pytest.raises(KeyboardInterrupt), taken_while(lambda: True):
            _interrupt_and_wait()
        assert noticed.is_set()

    def test_an_interrupt_before_the_step_begins_to_wait_is_taken_when_it_does(self, noticed: threading.Event) -> None:
        looks = iter([False, True])
        with noted(), pytest.raises(KeyboardInterrupt), taken_while(lambda: next(looks)):
            _interrupt_and_wait()
        assert noticed.is_set()

    def test_an_interrupt_while_nothing_waits_is_left_to_who_handles_it_and_known(
        self, noticed: threading.Event
    ) -> None:
        with noted() as came:
            with taken_while(lambda: False):
                assert not came()
                signal.raise_signal(signal.SIGINT)
            assert list(came()) == [signal.SIGINT]
        assert noticed.is_set()

    def test_of_several_the_first_is_first(self, noticed: threading.Event) -> None:
        before = signal.signal(signal.SIGTERM, lambda *_: None)
        with noted() as came:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            assert list(came()) == [signal.SIGTERM, signal.SIGINT]
        signal.signal(signal.SIGTERM, before)
        assert noticed.is_set()

    def test_all_handlers_are_put_back_also_if_the_waiting_ends_just_then(self, noticed: threading.Event) -> None:
        handled = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
        before = [signal.getsignal(each) for each in handled]
        looking, ended = threading.Event(), threading.Event()

        def late() -> bool:
            looking.set()
            return ended.wait(30)

        class Ends:
            """The block's last moment, after which the wake-up comes."""

            def __enter__(self) -> None: ...

            def __exit__(self, *_: object) -> None:
                ended.set()

        with noted(), taken_while(late), Ends():
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Dagster leaves it
            signal.raise_signal(signal.SIGINT)
            assert looking.wait(30)
        assert [signal.getsignal(each) for each in handled] == before
        assert noticed.is_set()


@dataclass
class Two:
    """Two jobs that do not depend on one another: the first does as it is told, the second notes that it began."""

    first: Callable[[], None]
    delay_s: float = 0
    began: list[str] = field(default_factory=list)

    def assets(self) -> list[dg.AssetsDefinition]:
        retries = dg.RetryPolicy(max_retries=1, delay=self.delay_s)
        checks = [AnyVolume(why="for the test")]

        @collection_asset(dataset=DATASETS["search_results"], checks=checks, retry_policy=retries)
        def search_results(job: JobContext) -> Part:
            """Begins."""
            self.began.append(job.job_id)
            self.first()
            return rows(["0x1:0x1"], 1, ""), Losses()

        @collection_asset(dataset=DATASETS["summary"], checks=checks, retry_policy=retries)
        def summary(job: JobContext) -> Part:
            """Comes second."""
            self.began.append(job.job_id)
            return rows(["0x1:0x1"], 1, ""), Losses()

        return [search_results, summary]


@contextmanager
def working_on(two: Two, folder: Path) -> Iterator[tuple[InProcess, Session]]:
    """A session of this process on a run of the two."""
    with noted() as came, in_process(folder) as small:
        defs = definitions(two.assets(), small.script)
        world = InProcess(small.script, small.instance, defs, small.opened)
        world.instance.add_dynamic_partitions(RUN_ID, [RUN])
        world.store.open_run(
            RunId.parse(RUN), world.collection.timezone, world.collection.graph, world.collection.now()
        )
        yield (
            world,
            Session(
                world.collection,
                defs.resolve_job_def(collection_job.name),
                world.instance,
                RUN,
                PlainLines(io.StringIO()),
                came,
                "collect typed",
                "collect goes on",
            ),
        )


def test_after_an_interrupt_in_one_step_no_other_job_begins(tmp_path: Path) -> None:
    two = Two(_interrupt)
    with working_on(two, tmp_path) as (world, work):
        with pytest.raises(KeyboardInterrupt):
            work.settle("a test")
        said = work.wind_up().splitlines()
        assert two.began == ["search_results"]
        assert world.statuses(RUN) == {"search_results": "failed", "summary": "pending"}
        assert world.job("summary", RUN).attempts == 0
    assert said[0] == f"Stopped. Run {RUN} is kept as it is."
    assert said[-2:] == [
        "What was paid for is kept: the next attempt buys only what is missing.",
        "Type: collect goes on",
    ]


def test_an_interrupt_between_two_tries_of_a_step_is_taken_at_once_and_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise TransientSourceError("not now")

    overslept = []

    def pause(seconds: float) -> None:
        _interrupt_and_wait()
        overslept.append(seconds)
        raise KeyboardInterrupt

    two = Two(fail, delay_s=timedelta(hours=1).total_seconds())
    with working_on(two, tmp_path) as (world, work):
        monkeypatch.setattr(time, "sleep", pause)
        with pytest.raises(KeyboardInterrupt):
            work.execute(["search_results"], {})
        monkeypatch.undo()
        assert not overslept
        assert world.statuses(RUN)["search_results"] == "running"
        assert "search_results: failed" in work.wind_up()
        assert world.job("search_results", RUN).error_kind == "interrupted"
        assert world.reason("search_results", RUN).endswith(f"(interrupted); type: collect run {RUN}")


def test_whoever_waits_is_told_which_dagster_run_is_to_start_what_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with working_on(Two(_interrupt), tmp_path) as (world, work):
        queued = world.instance.create_run_for_job(work.job, tags={PARTITION: RUN})
        work.display = PlainLines(shown := io.StringIO())
        monkeypatch.setattr(time, "sleep", lambda _: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            work.settle("a test")
    told = f"search_results about to start in Dagster run {queued.run_id[:8]}, summary about to start in Dagster run"
    assert f"Waiting for what others do: {told} {queued.run_id[:8]}. Ctrl-C ends the waiting" in shown.getvalue()


def test_of_a_command_that_began_no_job_nothing_is_said_to_be_paid_for_and_it_is_to_be_typed_again(
    tmp_path: Path,
) -> None:
    with working_on(Two(_interrupt), tmp_path) as (_, work):
        assert work.wind_up().splitlines() == [f"Stopped. Run {RUN} is kept as it is.", "Type: collect typed"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_collect_stops_waiting_for_its_place_and_says_how_to_go_on(desk: Desk, how: signal.Signals) -> None:
    with open_instance(desk.folder / "data" / "dagster") as instance:
        instance.event_log_storage.set_concurrency_slots("serpbase", 1)
        instance.event_log_storage.claim_concurrency_slot("serpbase", "11111111-of-another", "detail_pages")
        with desk.start("run", "2026-11-29", "--only", "search_results") as running:
            assert running.stderr is not None
            assert any("waits for a place in the pool serpbase" in line for line in running.stderr)
            running.send_signal(how)
            out, err = running.communicate(timeout=120)
        (left,) = instance.event_log_storage.get_concurrency_info("serpbase").pending_steps
        assert left.run_id == "11111111-of-another"
    assert (running.returncode, out) == (128 + how, "")
    assert err.splitlines() == [
        "Stopped. Run 2026-11-29 is kept as it is.",
        "Type: collect run 2026-11-29 --only search_results",
    ]
