"""A disk that is really full: clear words, nothing half-made, and with room again it goes on. See `full_disk`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from collection_pipeline_tests.checkout import ROOT
from collection_pipeline_tests.failures import full_disk
from collection_pipeline_tests.failures.small_disk import on_small_disk

MEGABYTES = 200
"""PostgreSQL with its programs takes 80."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the disk will be; not pytest's folder, which is closed to others, while root's PostgreSQL is another."""
    with tempfile.TemporaryDirectory(prefix="disk-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            tried = on_small_disk(folder, 1, ["true"])
        except OSError as error:
            pytest.skip(f"no mount namespace can be made: {error}")
        if tried.returncode:
            pytest.skip(f"no mount namespace can be made: {tried.stdout}")
        yield folder


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in vars(full_disk) if name.startswith("test_")])
def test_a_full_disk(folder: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_DISK", str(folder))
    story = f"{full_disk.__file__}::{name}"
    own = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={tmp_path / 'inside'}"]
    told = on_small_disk(folder, MEGABYTES, [sys.executable, "-m", "pytest", f"--rootdir={ROOT}", *own, story])
    assert told.returncode == 0, told.stdout
