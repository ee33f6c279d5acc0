"""`dagster dev` as the template configures it: from a failure to the degraded report, and what the sensor adds."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from benchmarks.dev_server import DevServer, dev_server, prepared, until
from benchmarks.measuring import Figure, process_cost, python, workplace
from benchmarks.whole_run import QUERIES
from collection_pipeline.automation import propagation_sensor
from collection_pipeline.engine.store import JobView, Store
from collection_pipeline.settings import Settings

JOBS = ("search_results", "detail_pages", "news_mentions", "daily_report")
LONGEST_S = 240

DAEMON_S = 5
"""Dagster's daemon looks this often which sensor's time has come."""


def measure(*, quick: bool) -> Iterator[Figure]:
    """Yesterday is collected; today's details fail, then recover; then nothing happens for a while."""
    today = datetime.now(UTC).date()
    with workplace() as bare, _emulator(bare) as base_url:
        environ = prepared(bare) | {"SERPBASE_BASE_URL": base_url, "SERPBASE_API_KEY": "benchmark"}
        queries = Path(environ["DAGSTER_HOME"]) / "queries.toml"
        queries.write_text(QUERIES)
        environ["COLLECTION_QUERIES"] = str(queries)
        home = environ["DAGSTER_HOME"]
        process_cost(python("-m", "benchmarks.collect", "run", str(today - timedelta(days=1))), environ, cwd=Path(home))
        store = Store.open(Settings.load(environ).database_url.get_secret_value())
        with store, dev_server(environ) as server:
            failing, recovering = [], []
            for number in range(1 if quick else 2):
                run_id = f"{today}" if number == 0 else f"{today}.{number + 1}"
                failing.append(_degrade(server, store, base_url, run_id))
                recovering.append(_recover(server, store, base_url, run_id))
            note = f"{len(failing)} times: {min(failing):.1f} to {max(failing):.1f}"
            yield Figure("details fail, to the degraded report", median(failing), "s", at_most=5, note=note)
            note = f"{len(recovering)} times: {min(recovering):.1f} to {max(recovering):.1f}"
            yield Figure("details recover, to the whole report", median(recovering), "s", note=note)
            yield from _idle(server, 1 if quick else 3)


def _degrade(server: DevServer, store: Store, base_url: str, run_id: str) -> float:
    """Seconds from the failure of details in the state table to a degraded report that can be read."""
    server.add_partition(run_id)
    _faults(base_url, "maps_detail=unauthorized")
    server.launch(JOBS, run_id)
    until(lambda: _is_open(store, run_id), within_s=LONGEST_S)
    until(lambda: _job(store, run_id, "detail_pages").status == "failed", within_s=LONGEST_S)
    read_at = until(lambda: _job(store, run_id, "daily_report").current is not None, within_s=LONGEST_S)
    report = _job(store, run_id, "daily_report").current
    assert report is not None
    assert report.artifact.degraded
    return read_at - _ended(_job(store, run_id, "detail_pages"))


def _recover(server: DevServer, store: Store, base_url: str, run_id: str) -> float:
    """Seconds from the details' own recovery to a report that is whole again, the news in between."""
    _faults(base_url, "")
    server.launch(["detail_pages"], run_id)
    until(lambda: _job(store, run_id, "detail_pages").status == "done", within_s=LONGEST_S)
    read_at = until(lambda: not _is_degraded(store, run_id), within_s=LONGEST_S)
    recovered_at = _ended(_job(store, run_id, "detail_pages"))
    until(lambda: not store.open_runs(), within_s=LONGEST_S)
    return read_at - recovered_at


def _idle(server: DevServer, rounds: int) -> Iterator[Figure]:
    """Processor time with the sensor on and off, in turn: each window has one tick, with the sensor on."""
    assert propagation_sensor.minimum_interval_seconds is not None
    window_s = propagation_sensor.minimum_interval_seconds + DAEMON_S
    used: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        for on in (True, False):
            server.sensor(on=on)
            time.sleep(3 * DAEMON_S)  # it ticks as soon as it is switched on
            before = server.cpu_s()
            time.sleep(window_s)
            used[on].append((server.cpu_s() - before) / window_s * 100)
    with_it, without = median(used[True]), median(used[False])
    ranges = [f"{min(each):.2f} to {max(each):.2f}" for each in used.values()]
    yield Figure(
        "idle, the sensor on, of one core", with_it, "%", note=f"{rounds} windows of {window_s:.0f} s: {ranges[0]}"
    )
    yield Figure("idle, the sensor off, of one core", without, "%", note=ranges[1])
    yield Figure("what the sensor adds to the idle cost", (with_it / without - 1) * 100, "%", at_most=5)


def _job(store: Store, run_id: str, job_id: str) -> JobView:
    return next(job for job in store.run_view(run_id).jobs if job.job_id == job_id)


def _is_open(store: Store, run_id: str) -> bool:
    return any(run.run_id == run_id for run in store.open_runs())


def _is_degraded(store: Store, run_id: str) -> bool:
    report = _job(store, run_id, "daily_report").current
    assert report is not None
    return report.artifact.degraded


def _ended(job: JobView) -> float:
    assert job.finished_at is not None
    return job.finished_at.timestamp()


@contextmanager
def _emulator(environ: Mapping[str, str]) -> Iterator[str]:
    """The emulator as a server of its own, whose faults can be set while it runs."""
    command = python("-m", "benchmarks.collect", "emulator", "--port", "0")
    with subprocess.Popen(command, env=environ, cwd=environ["TMPDIR"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(word.rstrip(".") for word in process.stdout.readline().split() if word.startswith("http"))
        finally:
            process.send_signal(signal.SIGINT)


def _faults(base_url: str, text: str) -> None:
    request = urllib.request.Request(f"{base_url}/emulator/faults", text.encode(), method="PUT")
    urllib.request.urlopen(request, timeout=10).close()
