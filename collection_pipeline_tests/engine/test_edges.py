"""An edge answers three questions, and remembers where it was written."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest

from collection_pipeline.engine.planning.edges import Edge, EdgeError, OnRerun, Policy

ANSWERS: dict[str, Any] = {"policy": "hard", "on_rerun": "follow", "why": "details need feature ids"}


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("on_rerun", get_args(OnRerun))
def test_every_policy_goes_with_every_rerun_decision(policy: Policy, on_rerun: OnRerun) -> None:
    edge = Edge("search_results", policy=policy, on_rerun=on_rerun, why="because")
    assert (edge.policy, edge.on_rerun) == (policy, on_rerun)


@pytest.mark.parametrize("missing", ANSWERS)
def test_no_answer_can_be_left_out(missing: str) -> None:
    answers = {name: answer for name, answer in ANSWERS.items() if name != missing}
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{missing}'"):
        Edge("search_results", **answers)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"policy": "soft"}, r"policy='soft'; write one of hard, degrade, skip, optional"),
        ({"policy": None}, r"policy=None; write one of hard, degrade, skip, optional"),
        ({"policy": ""}, r"policy=''"),
        ({"on_rerun": "ignore"}, r"on_rerun='ignore'; write one of follow, pin"),
        ({"why": ""}, r"has no why"),
        ({"why": " \n"}, r"has no why"),
        ({"why": None}, r"has no why"),
    ],
)
def test_an_empty_or_unknown_answer_is_refused_where_it_was_written(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(EdgeError, match=rf"^test_edges\.py:\d+: the edge from 'search_results' .*{says}"):
        Edge("search_results", **{**ANSWERS, **wrong})


def test_an_edge_knows_the_line_that_declares_it() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    edge = Edge("search_results", **ANSWERS)
    assert edge.declared_at == f"test_edges.py:{frame.f_lineno - 1}"


def test_where_an_edge_was_written_makes_no_difference() -> None:
    assert Edge("search_results", **ANSWERS) == Edge("search_results", **ANSWERS, declared_at="elsewhere.py:1")
