"""The emulator as a server: embedded, and on its own."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading

import pytest

from collection_pipeline.sources.contract import ApiRequest, TransientSourceError, parse_body
from collection_pipeline.sources.emulator import EmulatorOptions, embedded, parse_faults, serve
from collection_pipeline.sources.pacing import Backoff
from collection_pipeline.sources.serpbase import SerpBaseSource
from collection_pipeline.sources.transport import Timeouts
from collection_pipeline_tests.sources.emulator.client import Client
from collection_pipeline_tests.sources.raw_server import ONCE, collect


def test_the_client_collects_from_the_embedded_emulator() -> None:
    with embedded(EmulatorOptions()) as emulator:
        source = SerpBaseSource(emulator.base_url, emulator.api_key)
        [found] = asyncio.run(collect(source, [ApiRequest("maps_search", {"q": "airports in Iceland"})]))
        assert found.body
        places = parse_body(found.body)["places"]
        requests = [ApiRequest("maps_detail", {"feature_id": place["feature_id"]}) for place in places]
        attempts = asyncio.run(collect(source, requests))
        assert [attempt.error for attempt in attempts] == [None] * len(places)
        assert set(emulator.account.feature_id_charges.values()) == {1}
        assert emulator.account.credits_charged == sum(a.credits_charged for a in [found, *attempts])


def test_retries_get_through_a_flaky_emulator_and_pay_once() -> None:
    faults = parse_faults("maps_detail=upstream_error:0.3, maps_detail=cut_connection:0.2, maps_detail=rate_limit:0.2")
    with embedded(EmulatorOptions(faults=faults)) as emulator:
        source = SerpBaseSource(emulator.base_url, emulator.api_key, backoff=Backoff(20, first_s=0, seed=1))
        [found] = asyncio.run(collect(source, [ApiRequest("maps_search", {"q": "airports in Germany"})]))
        assert found.body
        ids = [place["feature_id"] for place in parse_body(found.body)["places"]]
        attempts = asyncio.run(collect(source, [ApiRequest("maps_detail", {"feature_id": i}) for i in ids]))
        assert sum(attempt.error is None for attempt in attempts) == len(ids)
        assert len(attempts) > len(ids)
        assert emulator.account.feature_id_charges == dict.fromkeys(ids, 1)


def test_a_time_out_is_one_and_does_not_keep_the_emulator_from_stopping() -> None:
    with embedded(EmulatorOptions(faults=parse_faults("*=timeout"))) as emulator:
        source = SerpBaseSource(emulator.base_url, emulator.api_key, timeouts=Timeouts(5, 0.1, 5), backoff=ONCE)
        [attempt] = asyncio.run(collect(source))
        assert isinstance(attempt.error, TransientSourceError)
        assert attempt.error.possibly_billed


def test_embedded_it_listens_on_loopback_only_and_is_gone_afterwards() -> None:
    with embedded(EmulatorOptions()) as emulator:
        host, port = emulator.base_url.removeprefix("http://").split(":")
        assert host == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)
    assert "emulator" not in {thread.name for thread in threading.enumerate()}


def test_each_embedded_emulator_has_its_own_key_and_books() -> None:
    with embedded(EmulatorOptions()) as one, embedded(EmulatorOptions()) as other:
        assert one.api_key != other.api_key
        Client(one.base_url, one.api_key).search("KEF")
        assert (one.account.credits_charged, other.account.credits_charged) == (2, 0)


def test_on_its_own_it_serves_until_it_is_interrupted() -> None:
    program = (
        "from collection_pipeline.sources.emulator import EmulatorOptions, serve\n"
        "serve(EmulatorOptions(), port=0, on_ready=lambda base_url: print(base_url, flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        base_url = process.stdout.readline().strip()
        assert Client(base_url, "k").search("KEF")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130, -signal.SIGINT)


def test_an_address_in_use_is_an_error_of_the_operating_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        serve(EmulatorOptions(), port=taken.getsockname()[1])
