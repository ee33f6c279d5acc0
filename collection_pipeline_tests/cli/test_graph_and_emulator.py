"""`collect graph` and `collect emulator`."""

from __future__ import annotations

import json
import signal
import urllib.request

from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline_tests.cli.desk import Desk


def test_the_graph_comes_as_text_mermaid_and_json(desk: Desk) -> None:
    text = desk.collect("graph").out
    assert "  ← search_results  hard      follow  details are fetched by" in text
    assert desk.collect("graph", "--format", "mermaid").out.startswith("flowchart TD\n")
    assert Graph.from_json(desk.collect("graph", "--json").out) == GRAPH


def test_the_emulator_serves_until_it_is_told_to_stop(desk: Desk) -> None:
    options = ("--port", "0", "--day", "2026-11-29", "--seed", "7", "--credits", "3", "--latency", "1")
    with desk.start("emulator", *options, "--faults", "news=slow@seconds=1") as serving:
        assert serving.stdout is not None
        line = serving.stdout.readline()
        assert line.startswith("The emulator listens at http://127.0.0.1:")
        base_url = line.split()[4].rstrip(".")
        with urllib.request.urlopen(f"{base_url}/emulator/faults") as response:
            assert response.read().decode().strip() == "news=slow@seconds=1"
        answers = [_search(base_url) for _ in range(2)]
        serving.send_signal(signal.SIGTERM)
        _, err = serving.communicate(timeout=60)
    assert [answer["status"] for answer in answers] == [0, 1020]  # 3 credits pay for one search of 2
    assert f"SERPBASE_BASE_URL={base_url}" in err
    assert "Traceback" not in err
    assert serving.returncode == 128 + signal.SIGTERM


def test_a_port_that_is_taken_is_wrong_use(desk: Desk) -> None:
    with desk.start("emulator", "--port", "0") as serving:
        assert serving.stdout is not None
        port = serving.stdout.readline().split()[4].rstrip(".").rpartition(":")[2]
        done = desk.collect("emulator", "--port", port)
        serving.send_signal(signal.SIGINT)
        serving.communicate(timeout=60)
    assert (done.code, done.out) == (2, "")
    assert f"cannot listen at 127.0.0.1, port {port}" in done.err


def test_help_lists_every_fault(desk: Desk) -> None:
    from collection_pipeline.sources.emulator.faults import FAULTS

    out = desk.collect("emulator", "--help").out
    assert all(fault in out for fault in FAULTS)


def _search(base_url: str) -> dict[str, object]:
    request = urllib.request.Request(
        f"{base_url}/google/maps/search",
        json.dumps({"q": "Reykjavik airport"}).encode(),
        {"Content-Type": "application/json", "X-API-Key": "any-key"},
    )
    with urllib.request.urlopen(request) as response:
        answer: dict[str, object] = json.load(response)
    return answer
