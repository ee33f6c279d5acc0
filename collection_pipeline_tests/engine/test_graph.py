"""What is not a graph is refused when it is built, with the edges at fault and where they are written."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from collection_pipeline.engine.planning.edges import Edge, OnRerun, Policy
from collection_pipeline.engine.planning.graph import Deadline, Graph, GraphError, Job, ShelfLife
from collection_pipeline_tests.engine.builders import collection_graph, job


def edge(upstream: str, line: int, policy: Policy = "hard", on_rerun: OnRerun = "follow") -> Edge:
    return Edge(upstream, policy=policy, on_rerun=on_rerun, why="for the test", declared_at=f"assets.py:{line}")


def refusal(*jobs: Job) -> str:
    with pytest.raises(GraphError) as caught:
        Graph.build(jobs)
    return str(caught.value)


def test_jobs_come_upstreams_first_in_one_order_however_they_are_listed_and_when_they_were_stored() -> None:
    jobs = [*collection_graph(), job("ratings", edge("detail_pages", 1)), job("bystander")]
    stored = list(Graph.from_json(Graph.build(jobs).to_json()).jobs)
    for _ in range(10):
        random.Random(7).shuffle(jobs)
        order = list(Graph.build(jobs).jobs)
        assert all(order.index(up) < order.index(each.job_id) for each in jobs for up in each.upstreams)
        assert order == stored


# cycles


def test_a_cycle_is_one_closed_path_with_every_edge_and_its_place() -> None:
    jobs = [
        job("search_results", edge("daily_report", 12, "optional")),
        job("detail_pages", edge("search_results", 30)),
        job("news_mentions", edge("detail_pages", 45, "skip")),
        job("daily_report", edge("detail_pages", 60, "degrade"), edge("bystander", 61)),
        job("bystander"),
    ]
    assert refusal(*jobs) == (
        "The jobs wait for each other in a circle: daily_report → search_results → detail_pages → daily_report.\n"
        "  daily_report → search_results  optional  assets.py:12\n"
        "  search_results → detail_pages  hard  assets.py:30\n"
        "  detail_pages → daily_report  degrade  assets.py:60\n"
        "Remove one of these edges."
    )


def test_the_shortest_of_several_cycles_is_told_and_bystanders_are_left_out() -> None:
    long = [job(f"long{i}", edge(f"long{(i + 1) % 5}", i)) for i in range(5)]
    short = [job("p", edge("q", 20), edge("long0", 21)), job("q", edge("p", 22))]
    behind = [job("reader", edge("p", 30)), job("lone")]
    message = refusal(*long, *short, *behind)
    assert message.startswith("The jobs wait for each other in a circle: p → q → p.\n")
    assert "long" not in message
    assert "reader" not in message


@given(st.permutations(["a", "b", "c", "d", "e"]), st.integers(0, 3))
def test_the_message_does_not_depend_on_the_order_of_declaration(order: list[str], seed: int) -> None:
    edges = {"a": [("c", 1)], "b": [("a", 2), ("e", 3)], "c": [("b", 4)], "d": [("a", 5)], "e": []}
    message = refusal(*(job(name, *(edge(up, line) for up, line in edges[name])) for name in order))
    assert message.startswith("The jobs wait for each other in a circle: a → b → c → a.")


@given(st.data())
def test_a_cycle_is_reported_exactly_when_there_is_one_and_it_is_real(data: st.DataObject) -> None:
    names = "abcdef"[: data.draw(st.integers(2, 6))]
    pairs = data.draw(st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda p: p[0] != p[1])))
    jobs = [job(name, *(edge(up, 1) for up, down in sorted(pairs) if down == name)) for name in names]
    try:
        order = list(Graph.build(jobs).jobs)
    except GraphError as error:
        path = str(error).partition("circle: ")[2].partition(".")[0].split(" → ")
        assert path[0] == path[-1]
        assert len(set(path)) == len(path) - 1
        assert set(pairwise(path)) <= pairs
    else:
        assert all(order.index(up) < order.index(down) for up, down in pairs)


# single edges


def test_a_job_cannot_wait_for_itself() -> None:
    assert refusal(job("a", edge("a", 3))) == "assets.py:3: the edge a → a makes the job wait for itself; remove it."


def test_an_unknown_upstream_is_named_with_its_nearest_name_or_all_there_are() -> None:
    message = refusal(job("search_results"), job("detail_pages", edge("serach_results", 9)))
    assert message == (
        "assets.py:9: the edge serach_results → detail_pages reads from an unknown job. Did you mean 'search_results'?"
    )
    assert refusal(job("a", edge("zzz", 4))).endswith("There are: a.")


def test_a_doubled_edge_shows_both_places() -> None:
    assert refusal(job("a"), job("b", edge("a", 5), edge("a", 6, "optional"))) == (
        "assets.py:6: the edge a → b (optional) is declared twice; the first (hard) is at assets.py:5. Keep one."
    )


def test_two_jobs_cannot_share_a_name() -> None:
    assert refusal(job("a"), job("a")) == "Two jobs are called 'a'; a job_id names one job."


def test_nobody_may_depend_hard_on_a_job_that_may_be_skipped() -> None:
    message = refusal(job("a"), job("b", edge("a", 5, "skip")), job("c", edge("b", 8, "hard")))
    assert message == (
        "assets.py:8: the edge b → c is hard, but b may be skipped and then never delivers (its edge from a,"
        " assets.py:5). Make this edge degrade, skip or optional."
    )


@pytest.mark.parametrize("policy", ["degrade", "skip", "optional"])
def test_every_other_policy_may_depend_on_a_job_that_may_be_skipped(policy: Policy) -> None:
    assert "c" in Graph.build([job("a"), job("b", edge("a", 5, "skip")), job("c", edge("b", 8, policy))])


def test_degrade_needs_the_shelf_life_of_its_upstream() -> None:
    message = refusal(job("a", shelf_life=None), job("b", edge("a", 5, "degrade")))
    assert message.startswith("assets.py:5: the edge a → b falls back to earlier runs, but a has no shelf life.")
    assert "time_window(fail_window=…)" in message


def test_every_edge_at_fault_is_named_at_once() -> None:
    message = refusal(job("a", edge("a", 1)), job("b", edge("x", 2), edge("a", 3), edge("a", 4)))
    assert [line.partition(":the")[0][:11] for line in message.splitlines()] == [
        "assets.py:1",
        "assets.py:2",
        "assets.py:4",
    ]


# what a run remembers


def test_a_stored_graph_is_read_back_equal_and_upstreams_first() -> None:
    graph = Graph.build(
        [
            job("z", shelf_life=ShelfLife(timedelta(days=3, microseconds=5))),
            job(
                "a", edge("z", 1, "degrade", "pin"), shelf_life=None, deadline=Deadline("0 9 * * 1-5", "Asia/Shanghai")
            ),
        ]
    )
    restored = Graph.from_json(graph.to_json())
    assert restored == graph
    assert list(restored.jobs) == ["z", "a"]


def test_equal_graphs_are_stored_alike_however_they_are_listed() -> None:
    jobs = list(collection_graph())
    assert Graph.build(reversed(jobs)).to_json() == Graph.build(jobs).to_json()


def test_any_change_of_an_edge_changes_what_is_stored() -> None:
    assert collection_graph("pin").to_json() != collection_graph("follow").to_json()


def test_a_graph_stored_by_a_newer_version_is_refused_in_words() -> None:
    newer = collection_graph().to_json().replace('"format":1', '"format":2')
    with pytest.raises(GraphError, match="format 2; this version reads 1"):
        Graph.from_json(newer)


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"format":1}', '{"format":1,"jobs":[{"job_id":"a"}]}'])
def test_a_stored_graph_that_is_damaged_is_refused_in_words(damage: str) -> None:
    with pytest.raises(GraphError, match="The stored graph is damaged"):
        Graph.from_json(damage)


def test_a_stored_graph_with_an_unknown_policy_is_damaged() -> None:
    with pytest.raises(GraphError, match="damaged"):
        Graph.from_json(collection_graph().to_json().replace('"hard"', '"harder"'))
