"""Details against a server that takes 50 ms for each: how close to the ideal, everything stored.

The ideal is a client that does nothing with the answers (`probe.py`), measured in the same rounds. Not even that one
reaches what the sum says, 64 answers every 50 ms; the share of that is shown beside.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from benchmarks import probe
from benchmarks.measuring import Figure, interleaved, ratio, seconds
from benchmarks.server import serving
from benchmarks.workload import Details, found, searched
from collection_pipeline.engine.store import Store
from collection_pipeline.sources.serpbase import SerpBaseSource
from collection_pipeline.steps import detail

LATENCY_S = 0.05
IN_FLIGHT = 64


def measure(*, quick: bool) -> Iterator[Figure]:
    """Fetching through the ledger, and with publishing, against the ideal and against bare aiohttp."""
    places = IN_FLIGHT * (50 if quick else 120)
    by_the_sum_s = places / IN_FLIGHT * LATENCY_S
    bodies = [json.dumps(dict(request.params)).encode() for request in detail.requests(found(places))]
    with serving(LATENCY_S) as server, TemporaryDirectory() as folder:
        taken = interleaved(
            2 if quick else 7,
            ours=lambda: _ours(server.base_url, places, Path(folder)),
            peer=lambda: (seconds(lambda: asyncio.run(_bare(server.base_url, bodies))), 0.0),
            ideal=lambda: (seconds(lambda: asyncio.run(probe.ask(server.base_url, bodies, IN_FLIGHT))), 0.0),
        )
    assert server.mean_s is not None
    yield Figure("the server's own time for an answer", server.mean_s * 1e3, "ms")
    fetched = [fetch_s for fetch_s, _ in taken["ours"]]
    whole = [fetch_s + publish_s for fetch_s, publish_s in taken["ours"]]
    bare, ideal = ([fetch_s for fetch_s, _ in taken[name]] for name in ("peer", "ideal"))
    by_the_sum = [by_the_sum_s] * len(whole)
    share, note = ratio(by_the_sum, ideal)
    yield Figure("the ideal client, of 64 answers every 50 ms", share, "x", note=note)
    share, note = ratio(ideal, fetched)
    yield Figure("fetched and stored, of the ideal client", share, "x", at_least=0.93, note=note)
    share, note = ratio(by_the_sum, fetched)
    yield Figure("fetched and stored, of 64 answers every 50 ms", share, "x", note=note)
    yield Figure("the same in requests", places / (by_the_sum_s / share), "1/s")
    share, note = ratio(ideal, bare)
    yield Figure("bare aiohttp, nothing stored, of the ideal client", share, "x", note=note)
    share, note = ratio(bare, fetched)
    yield Figure("fetched and stored, of bare aiohttp", share, "x", note=note)
    share, note = ratio(ideal, whole)
    yield Figure("with parsing, audit and publishing, of the ideal client", share, "x", note=note)
    published = [publish_s / places * 1e6 for _, publish_s in taken["ours"]]
    yield Figure("publishing alone, a detail", min(published), "µs")


def _ours(base_url: str, places: int, folder: Path) -> tuple[float, float]:
    """Seconds for fetching, and for publishing afterwards, in a new store."""
    with TemporaryDirectory(dir=folder) as home, Store.open(f"sqlite:///{home}/collection.db") as store:
        searched(store, places)
        work = Details(store, lambda: SerpBaseSource(base_url, "benchmark", concurrency=IN_FLIGHT))
        answers = []
        fetch_s = seconds(lambda: answers.append(work.fetch()))
        publish_s = seconds(lambda: work.publish(answers[0]))
        return fetch_s, publish_s


async def _bare(base_url: str, bodies: Sequence[bytes]) -> None:
    """The same requests over aiohttp alone, made beforehand, every answer parsed and forgotten."""
    waiting = iter(bodies)
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as workers:

        async def work() -> None:
            for body in waiting:
                async with session.post(f"{base_url}/google/maps/detail", data=body) as response:
                    json.loads(await response.read())

        for _ in range(IN_FLIGHT):
            workers.create_task(work())
