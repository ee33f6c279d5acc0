"""The benchmarks run: they use the engine from outside, where no type tells that it has changed under them."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from collection_pipeline_tests.checkout import ROOT


@pytest.mark.parametrize("subject", ["handover", "planning"])
def test_a_subject_finds_its_figures(subject: str) -> None:
    command = [sys.executable, "-m", "benchmarks", subject, "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout)["subjects"][subject]
    assert figures
    assert [figure["name"] for figure in figures if not math.isfinite(figure["value"])] == [], done.stderr
