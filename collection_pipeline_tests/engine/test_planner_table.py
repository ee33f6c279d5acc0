"""The decision table of the edge policies, a row per cell."""

from __future__ import annotations

from typing import NamedTuple, get_args

import pytest

from collection_pipeline.engine.planning.edges import Policy
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import Readiness, Resolution, plan
from collection_pipeline.engine.planning.state import Artifact, JobState
from collection_pipeline_tests.engine.builders import (
    AFTER_NINE,
    BEFORE_NINE,
    NINE,
    RUNNING,
    artifact,
    done,
    edge,
    failed,
    job,
    run_state,
    state,
)

YESTERDAY = artifact("a", run_id="2026-11-28")

UPSTREAM: dict[str, dict[str, JobState]] = {
    "usable": {"a": done("a")},
    "usable, rerun failed": {"a": failed(artifact("a"))},
    "pending": {},
    "running": {"a": RUNNING},
    "rerunning": {"a": state("running", artifact("a"), {})},
    "planned": {"a": state(in_flight=True)},
    "failed": {"a": failed()},
    "skipped": {"a": state("skipped", attempted={"root": None}), "root": failed()},
    "blocked": {"root": failed()},
}
"""States in which the upstream `a`, which itself depends on `root`, may be found."""


class Cell(NamedTuple):
    policy: Policy
    upstream: str
    late: bool
    fallback: bool
    resolution: Resolution
    reads: Artifact | None


USABLE = ("usable", "usable, rerun failed")
COMING = ("pending", "running", "rerunning", "planned")
COMING_FOR_THE_FIRST_TIME = ("pending", "running", "planned")
UNAVAILABLE = ("failed", "skipped", "blocked")
POLICIES: tuple[Policy, ...] = get_args(Policy)
PATIENT: tuple[Policy, ...] = ("hard", "skip")
NO, YES = False, True

TABLE = [
    # upstream usable: use it, whatever else
    *[
        Cell(each, a, late, old, "use", artifact("a"))
        for each in POLICIES
        for a in USABLE
        for late in (NO, YES)
        for old in (NO, YES)
    ],
    # upstream pending or running, not late: wait, also if an older version of this run is there
    *[Cell(each, a, NO, old, "wait", None) for each in POLICIES for a in COMING for old in (NO, YES)],
    # late: hard and skip edges wait on
    *[Cell(each, a, YES, YES, "wait", None) for each in PATIENT for a in COMING],
    # late: degrade and optional edges stop waiting; an older version of this run is better than one of an earlier run
    *[Cell("degrade", a, YES, YES, "fallback", YESTERDAY) for a in COMING_FOR_THE_FIRST_TIME],
    *[Cell("degrade", a, YES, NO, "blocked", None) for a in COMING_FOR_THE_FIRST_TIME],
    *[Cell("optional", a, YES, YES, "without", None) for a in COMING_FOR_THE_FIRST_TIME],
    Cell("degrade", "rerunning", YES, YES, "use", artifact("a")),
    Cell("optional", "rerunning", YES, YES, "use", artifact("a")),
    # upstream unavailable
    *[Cell("hard", a, late, YES, "blocked", None) for a in ("failed", "blocked") for late in (NO, YES)],
    *[Cell("degrade", a, late, YES, "fallback", YESTERDAY) for a in UNAVAILABLE for late in (NO, YES)],
    *[Cell("degrade", a, late, NO, "blocked", None) for a in UNAVAILABLE for late in (NO, YES)],
    *[Cell("skip", a, late, YES, "skip", None) for a in ("failed", "skipped") for late in (NO, YES)],
    *[Cell("optional", a, late, YES, "without", None) for a in UNAVAILABLE for late in (NO, YES)],
    # only blocked: it has not failed, so nothing is decided yet about what it would have made skip
    *[Cell("skip", "blocked", late, YES, "blocked", None) for late in (NO, YES)],
]


@pytest.mark.parametrize("cell", TABLE, ids=lambda cell: "-".join(map(str, cell[:5])))
def test_an_edge_decides_by_its_policy_and_the_state_of_its_upstream(cell: Cell) -> None:
    above = edge("root", "skip") if cell.upstream == "skipped" else edge("root", "hard")
    needs_root = cell.upstream in ("skipped", "blocked")
    graph = Graph.build(
        [job("root"), job("a", *([above] if needs_root else [])), job("b", edge("a", cell.policy), deadline=NINE)]
    )
    run = run_state(UPSTREAM[cell.upstream], *([YESTERDAY] if cell.fallback else []))

    (decision,) = plan(graph, run, AFTER_NINE if cell.late else BEFORE_NINE).decisions["b"].edges

    assert (decision.resolution, decision.artifact) == (cell.resolution, cell.reads)


def test_the_table_has_every_cell() -> None:
    cells = {(policy, upstream, late) for policy, upstream, late, *_ in TABLE}
    everything = {
        (policy, upstream, late) for policy in get_args(Policy) for upstream in UPSTREAM for late in (False, True)
    }
    refused_when_the_graph_is_built = {("hard", "skipped", False), ("hard", "skipped", True)}
    assert everything - cells == refused_when_the_graph_is_built


@pytest.mark.parametrize(
    ("edges", "readiness"),
    [
        ([], "run"),
        (["usable"], "run"),
        (["usable", "waiting"], "wait"),
        (["usable", "waiting", "blocked"], "blocked"),
        (["usable", "waiting", "blocked", "skipping"], "skip"),
    ],
)
def test_skip_beats_blocked_beats_wait_beats_run(edges: list[str], readiness: Readiness) -> None:
    upstreams = {
        "usable": (edge("usable"), done("usable")),
        "waiting": (edge("waiting"), RUNNING),
        "blocked": (edge("blocked", "hard"), failed()),
        "skipping": (edge("skipping", "skip"), failed()),
    }
    graph = Graph.build([*(job(each) for each in edges), job("b", *(upstreams[each][0] for each in edges))])

    assert (
        plan(graph, run_state({each: upstreams[each][1] for each in edges}), BEFORE_NINE).decisions["b"].readiness
        == readiness
    )
