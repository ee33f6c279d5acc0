"""Texts that strangers wrote do nothing in Dagster's metadata, in alerts, and where the state table is printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from collection_pipeline.engine.jobs.events import preview_table
from collection_pipeline.engine.planning.graph import Graph, GraphError
from collection_pipeline.engine.runs import alerts
from collection_pipeline.engine.store import Store, Transition
from collection_pipeline.engine.visible import visible
from collection_pipeline.engine.words.outcomes import failure_reason
from collection_pipeline_tests.steps.test_untrusted import HOSTILE

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""As permissive as a renderer gets: it lets HTML through."""

IN_A_TABLE = {"table", "thead", "tbody", "tr", "th", "td", "inline"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_preview_shows_a_hostile_cell_and_nothing_else(text: str) -> None:
    assert_inert(text)


@given(st.text())
def test_whatever_it_is(text: str) -> None:
    assert_inert(text)


def assert_inert(text: str) -> None:
    """One row of two cells, each plain text or a code span with the visible text."""
    tokens = MARKDOWN.parse(preview_table(pd.DataFrame({"name": [text], "rating": [4.5]}, dtype=object)))
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= IN_A_TABLE
    cells = [token for token in tokens if token.type == "inline"]
    assert [cell.content for cell in cells[:2]] == ["name", "rating"]
    shown = visible(text)
    spans = [[child.type for child in cell.children or ()] for cell in cells[2:]]
    assert spans == [["code_inline"] if shown else [], ["code_inline"]]
    if shown and len(shown) <= 80:
        content = (cells[2].children or [])[0].content
        assert content == shown.replace("`", "ˋ").replace("|", "¦")


@pytest.mark.parametrize("text", HOSTILE)
def test_the_reason_of_a_failure_is_one_visible_line(text: str) -> None:
    reason = failure_reason(ValueError(text))
    assert reason == visible(reason)
    assert "\n" not in reason


def test_the_reason_of_a_failure_names_the_line_outside_the_engine_that_led_to_it() -> None:
    with pytest.raises(GraphError) as met:
        Graph.from_json("{")
    assert re.search(r"\(test_hostile_texts\.py, line \d+\)$", failure_reason(met.value))


@pytest.fixture
def channel() -> Iterator[tuple[str, list[Any]]]:
    """An alert channel: its address, and the messages that it took."""
    taken: list[Any] = []

    class Channel(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Channel) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"json://127.0.0.1:{server.server_port}", taken
        server.shutdown()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:apprise")
def test_an_alert_carries_no_hidden_character_and_no_markup_of_a_strangers(
    channel: tuple[str, list[Any]], sqlite_url: str
) -> None:
    url, taken = channel
    text = "\n".join(text for text in HOSTILE if len(text) < 1_000)
    with Store.open(sqlite_url) as store:
        alerts.send(store, [Transition(1, "key", "opened", "\x1b[31m title", text)], [url])

    (message,) = taken
    lines = message["message"].splitlines()
    assert lines == [visible(line) for line in lines]
    assert "<script>alert(1)</script>" in lines  # plain text: not escaped, and not markup to anybody
    assert message["title"] == visible(message["title"])
