"""Runs the subjects, each in a process of its own, and prints what they found beside the machine they ran on."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from importlib import import_module
from typing import Any

from benchmarks.machine import facts
from benchmarks.measuring import ROOT, Figure, python

SUBJECTS = {
    "details": "Details from a server with 50 ms latency, 64 in flight",
    "memory": "100,000 details",
    "storing": "100,000 x 15 rows with a 1 KB JSON column, data frame to data frame",
    "loading": "What a command loads",
    "whole_run": "A whole trivial run",
    "handover": "From job to job within one Dagster run",
    "settled_runs": "10, 1,000 and 100,000 settled runs",
    "planning": "The planner",
    "under_dev": "Under `dagster dev`",
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: a first look, not a figure to quote")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    unknown = set(given.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    if given.alone:
        figures = import_module(f"benchmarks.{given.subjects[0]}").measure(quick=given.quick)
        print(json.dumps([asdict(figure) for figure in figures]))
        return
    found: dict[str, Any] = {"machine": facts(), "quick": given.quick, "subjects": {}}
    if not given.json:
        print("\n".join(f"{name}: {value}" for name, value in found["machine"].items()))
    for subject in given.subjects or SUBJECTS:
        started = time.monotonic()
        figures = _measured(subject, quick=given.quick)
        found["subjects"][subject] = [asdict(figure) | {"kept": figure.kept} for figure in figures]
        if not given.json:
            print(f"\n{subject}: {SUBJECTS[subject]} ({time.monotonic() - started:.0f} s)")
            print("\n".join(_lines(figures)), flush=True)
    if given.json:
        print(json.dumps(found, indent=2))


def _measured(subject: str, *, quick: bool) -> list[Figure]:
    command = python("-m", "benchmarks", subject, "--alone", *(["--quick"] if quick else []))
    # A session of its own: it is told once to end, and then ends the servers that it started.
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode != 0:
        print(err, file=sys.stderr)
        return [Figure("did not end well, see stderr", float("nan"), "", at_least=0)]
    return [Figure(**each) for each in json.loads(out.splitlines()[-1])]


def _lines(figures: Iterable[Figure]) -> Iterable[str]:
    for figure in figures:
        line = f">= {figure.at_least:g}" if figure.at_least is not None else ""
        line = f"<= {figure.at_most:g}" if figure.at_most is not None else line
        verdict = {True: "kept", False: "MISSED", None: ""}[figure.kept]
        cells = f"  {figure.name:<62}{figure.value:>10,.3g} {figure.unit:<7}{line:<9}{verdict:<7}"
        yield f"{cells} {figure.note}".rstrip()


if __name__ == "__main__":
    main()
