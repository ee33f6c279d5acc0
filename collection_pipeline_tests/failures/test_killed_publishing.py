"""A process that publishes is killed between any two of its statements: the old version stands, or the new one does."""

from __future__ import annotations

from hashlib import sha256
from itertools import count
from pathlib import Path

from collection_pipeline.engine.holders import process_is_gone
from collection_pipeline.engine.store import Store
from collection_pipeline_tests import children
from collection_pipeline_tests.failures.publisher import (
    JOB,
    RUN,
    Points,
    claim_and_publish,
    holder,
    publish,
)
from collection_pipeline_tests.store.world import World, dataset_of

NEVER = 0


def test_after_a_kill_at_any_point_one_whole_version_is_readable(database_url: str, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    with Store.open(database_url) as store:
        world = World(store)
        world.open(RUN)
        world.done(RUN, "search")
        repair(world, "edition 0", reports)
        for point in count(1):
            before = readable(world, reports)
            child = children.start(claim_and_publish, database_url, reports, f"killed at {point}", point)
            survived = children.ended(child) == 0

            now = readable(world, reports)
            status = release(world)

            assert now in (before, f"killed at {point}")
            assert status == ("failed" if now == before else "done")
            if survived:
                break
            repair(world, f"edition {point}", reports)
    assert point > 20


def release(world: World) -> str:
    """What the state table says once the dead holder is noticed, as the sensor and every command notice it."""
    for running in world.store.running(RUN):
        assert process_is_gone(running.holder)
        assert world.store.fail_abandoned(RUN, running.job_id, running.holder, "gone", world.now)
    return world.statuses(RUN)[JOB]


def repair(world: World, edition: str, reports: Path) -> None:
    """The next attempt, which finds whatever the killed one left behind."""
    version = publish(world, world.claim(RUN, JOB, holder(edition)), edition, reports, Points(NEVER)).artifact.version
    assert readable(world, reports) == edition
    assert {path.name for path in (reports / RUN / JOB).iterdir()} == {f"v{number}" for number in range(1, version + 1)}


def readable(world: World, reports: Path) -> str:
    """The edition that everybody reads now: rows, manifest and file agree on it, and none of it is missing."""
    job = next(job for job in world.store.run_view(RUN).jobs if job.job_id == JOB)
    assert job.current is not None
    frame = world.store.read(dataset_of(JOB), job.current.artifact)
    (edition,) = set(frame["name"]) - {name for name in frame["name"] if name.endswith((" a", " b"))}
    assert sorted(frame["name"]) == [edition, edition, f"{edition} a", f"{edition} b"]
    (file,) = job.current.files
    content = (reports / file["path"]).read_bytes()
    assert content.decode() == edition
    assert sha256(content).hexdigest() == file["sha256"]
    return str(edition)
