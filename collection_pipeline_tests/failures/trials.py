"""Kill a process that fetches 1,000 details, at random points, and compare the books of both sides."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random

from collection_pipeline.sources.contract import CREDITS
from collection_pipeline_tests import children
from collection_pipeline_tests.failures.desk import RUN, Desk

CONCURRENCY = 16
PRICE = CREDITS["maps_detail"]
LATENCY_MS = 20.0
COUNTRIES = {"us": "United States", "ca": "Canada", "br": "Brazil", "au": "Australia", "cn": "China"}
THOUSAND_PLACES = "\n".join(
    f'[[query]]\nq = "airports in {country}"\ngl = "{code}"\npages = 10\n' for code, country in COUNTRIES.items()
)


@dataclass(frozen=True, slots=True)
class Found:
    """What one trial came to. `places` were to be fetched, `rows` are in the artifact.

    `lost`: answers that the source charged and nobody stored, over all kills. `possibly_billed`: the credits that are
    shown for them. `stored_twice`: places of which two answers were stored, so that the second was bought for nothing.
    """

    kills: int
    places: int
    rows: int
    lost: int
    possibly_billed: int
    stored_twice: int


def run_trial(desk: Desk, random: Random, kills: int) -> Found:
    """Search, then fetch the details, killed so many times, then once to the end."""
    desk.environment["COLLECTION_CONCURRENCY"] = str(CONCURRENCY)
    desk.collect("run", RUN, "--only", "search_results")
    places = desk.one("SELECT count(DISTINCT feature_id) FROM search_results WHERE run_id = :run", run=RUN)
    for _ in range(kills):
        kill_at(desk, random.randint(1, places - len(_stored(desk)) - 1))
    desk.collect("run", RUN, "--only", "detail_pages")
    stored = _stored(desk)
    return Found(
        kills=kills,
        places=places,
        rows=desk.one("SELECT count(*) FROM detail_pages WHERE run_id = :run", run=RUN),
        lost=(desk.account.feature_id_charges - stored).total(),
        possibly_billed=desk.one("SELECT sum(credits_possibly_billed) FROM jobs WHERE run_id = :run", run=RUN),
        stored_twice=sum(count > 1 for count in stored.values()),
    )


def kill_at(desk: Desk, answers: int) -> None:
    """Start the details, and kill the process once the source has charged so many more of them."""
    goal = desk.account.feature_id_charges.total() + answers
    process, output = desk.start("run", RUN, "--only", "detail_pages")
    charged(desk, goal, process, output)
    process.kill()
    assert children.ended(process) == -9


def charged(desk: Desk, goal: int, process: ForkServerProcess, output: Path) -> None:
    """Wait until the source has charged so many details, while this process fetches them."""
    while desk.account.feature_id_charges.total() < goal:
        assert process.is_alive(), output.read_text()
        time.sleep(0.001)


def goes_on(desk: Desk) -> None:
    """The next attempt at the details of twenty places succeeds, and no detail that was stored is bought again."""
    stored = desk.one("SELECT count(*) FROM requests WHERE job_id = 'detail_pages' AND kind = 'ok'")
    before = desk.account.feature_id_charges.total()
    desk.collect("run", RUN, "--only", "detail_pages")
    assert desk.account.feature_id_charges.total() - before == 20 - stored
    assert desk.statuses()["detail_pages"] == "done"
    assert desk.one("SELECT count(*) FROM detail_pages WHERE run_id = :run", run=RUN) == 20


def _stored(desk: Desk) -> Counter[str]:
    """How many answers of each place are in the ledger."""
    rows = desk.rows("SELECT params FROM requests WHERE job_id = 'detail_pages' AND kind = 'ok'")
    return Counter(str(json.loads(params)["feature_id"]) for (params,) in rows)
