"""The graph as text, as a mermaid picture, as JSON, and as the page of dependencies."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.words.picture import dependencies_page, graph_json, graph_mermaid, graph_text
from collection_pipeline_tests.engine.builders import THREE_DAYS, collection_graph

HOSTILE = [
    '"]; click job0 call alert()',
    "<script>alert(1)</script>",
    "`code` | pipe | **bold** [link](http://x)",
    "two\nlines\r\nend",
    "%%{init: {}}%%",
    "é中文 #quot;",
]


def hostile_graph(text: str) -> Graph:
    edge = Edge(text, policy="hard", on_rerun="follow", why=f"{text} why")
    return Graph.build([Job(text), Job("b", (edge,))])


def test_the_text_shows_every_job_with_its_edges_beneath() -> None:
    assert graph_text(collection_graph()).splitlines()[:4] == [
        "search_results  (shelf life 3 days, with a warning from 36 hours)",
        "detail_pages  (shelf life 3 days, with a warning from 36 hours)",
        "  ← search_results  hard      follow  for the test",
        "news_mentions  (shelf life 3 days, with a warning from 36 hours)",
    ]


def test_the_picture_draws_every_edge_with_its_policy() -> None:
    assert graph_mermaid(collection_graph()) == (
        "flowchart TD\n"
        '    job0["search_results"]\n'
        '    job1["detail_pages"]\n'
        '    job2["news_mentions"]\n'
        '    job3["daily_report"]\n'
        '    job0 ==>|"hard, follow"| job1\n'
        '    job1 -.->|"skip, follow"| job2\n'
        '    job1 -->|"degrade, follow"| job3\n'
        '    job2 -.->|"optional, follow"| job3\n'
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_can_end_its_label_or_its_line(text: str) -> None:
    lines = graph_mermaid(hostile_graph(text)).splitlines()
    assert len(lines) == 4
    assert re.fullmatch(r'    job0\["[\w \-#;]*"\]', lines[1])


@given(st.text(min_size=1).filter(lambda text: text.strip() and text != "b"))
def test_any_name_is_drawn_on_one_safe_line(text: str) -> None:
    node = graph_mermaid(hostile_graph(text)).split("\n")[1]
    assert re.fullmatch(r'    job0\["[\w \-#;]*"\]', node)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_can_leave_its_cell(text: str) -> None:
    page = dependencies_page(hostile_graph(text))
    (row,) = [line for line in page.splitlines() if line.endswith(" why |") and "policy" not in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
    assert "<script" not in page
    assert not re.search(r"(?<!\\)\]\(", page)


def test_the_page_lists_every_edge_with_its_answers() -> None:
    page = dependencies_page(collection_graph("pin"))
    assert r"| search\_results | detail\_pages | hard | follow | for the test |" in page
    assert r"| news\_mentions | daily\_report | optional | pin | for the test |" in page
    assert r"| daily\_report | shelf life 3 days, with a warning from 36 hours; deadline 0 9 \* \* \* UTC |" in page
    assert graph_mermaid(collection_graph("pin")) in page


def test_the_json_is_what_a_run_remembers() -> None:
    assert Graph.from_json(graph_json(collection_graph())) == collection_graph()


def test_a_job_without_limits_says_so() -> None:
    assert "| a | no limit |" in dependencies_page(Graph.build([Job("a"), Job("b", (), THREE_DAYS)]))
