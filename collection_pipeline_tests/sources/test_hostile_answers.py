"""Every nasty answer ends in a typed error or in a success that is fit to be stored; the rest of the batch goes on."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from collection_pipeline_tests.sources.hostile_answers import GOOD, corpus
from collection_pipeline_tests.sources.raw_server import Received, raw_server, saying

CORPUS = corpus()
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcome() -> Any:
    """One batch in a process of its own: each hostile answer, and after each of them a good one."""
    good = saying(GOOD)

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        number = int(request.json()["feature_id"].split(":")[1], 16) - 1
        await (CORPUS[number // 2].answer if number % 2 == 0 else good)(request, writer)

    async def run() -> bytes:
        async with raw_server(answer) as server:
            program = "collection_pipeline_tests.sources.hostile_client"
            arguments = ("-m", program, server.base_url, str(2 * len(CORPUS)))
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
            )
            printed, _ = await process.communicate()
            assert process.returncode == 0
            return printed

    return json.loads(asyncio.run(run()))


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 150
    assert len({hostile.name for hostile in CORPUS}) == len(CORPUS)


def test_each_ends_as_it_should(outcome: Any) -> None:
    ends = {hostile.name: outcome["ends"][str(2 * position + 1)] for position, hostile in enumerate(CORPUS)}
    wrong = {h.name: f"{ends[h.name]}, not {h.ends_in}" for h in CORPUS if ends[h.name] not in h.ends_in.split()}
    assert not wrong


def test_the_rest_of_the_batch_goes_on(outcome: Any) -> None:
    assert {outcome["ends"][str(2 * position + 2)] for position in range(len(CORPUS))} == {"success"}


def test_memory_stays_bounded(outcome: Any) -> None:
    assert outcome["peak_mb"] < 250
