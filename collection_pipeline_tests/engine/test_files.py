"""Files of a version: there whole or not at all, on a disk and in a place that knows neither folders nor renaming."""

from __future__ import annotations

import os
import shutil
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from upath import UPath

from collection_pipeline.engine.jobs.files import ASIDE, FilesUnavailableError, publish_files, remove_files

FILES = {"report.html": b"<p>", "places.csv": b"name"}


@pytest.fixture(params=["disk", "file://", "memory://"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UPath]:
    match request.param:
        case "disk":
            yield UPath(tmp_path / "reports")
        case "file://":
            yield UPath(f"file://{tmp_path / 'reports'}")
        case _:
            bucket = UPath(f"memory://{uuid.uuid4().hex}")
            yield bucket
            bucket.fs.rm(bucket.path, recursive=True)


def names(folder: UPath) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_manifest_leads_to_the_files(root: UPath) -> None:
    entries = publish_files(root, "2026-11-29", "daily_report", 1, FILES)

    assert {entry["name"]: (root / entry["path"]).read_bytes() for entry in entries} == FILES
    assert names(root / "2026-11-29" / "daily_report") == {"v1"}


def test_moved_with_everything_the_files_are_found_and_removed_where_they_are_now(tmp_path: Path) -> None:
    original, copy = UPath(tmp_path / "original"), UPath(tmp_path / "copy")
    entries = publish_files(original, "2026-11-29", "daily_report", 1, FILES)
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    (copy / "2026-11-29" / "notes.txt").write_text("mine")

    remove_files(copy, entries)

    assert names(copy / "2026-11-29") == {"notes.txt"}
    assert names(original / "2026-11-29" / "daily_report" / "v1") == set(FILES)


def test_versions_and_jobs_stand_side_by_side(root: UPath) -> None:
    publish_files(root, "2026-11-29", "daily_report", 1, FILES)
    publish_files(root, "2026-11-29", "daily_report", 2, FILES)
    publish_files(root, "2026-11-29", "weekly_report", 1, FILES)

    assert names(root / "2026-11-29") == {"daily_report", "weekly_report"}
    assert names(root / "2026-11-29" / "daily_report") == {"v1", "v2"}
    assert names(root / "2026-11-29" / "daily_report" / "v1") == set(FILES)


def test_on_a_disk_they_are_synced_before_they_appear_and_the_folders_above_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut must not leave a manifest that names empty files, or none."""
    root = tmp_path / "reports"
    final = root / "2026-11-29" / "daily_report" / "v1"
    synced: list[tuple[int, bool]] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append((os.fstat(number).st_ino, final.exists())))

    publish_files(UPath(root), "2026-11-29", "daily_report", 1, FILES)

    before = [*(final / name for name in FILES), final]
    after = [final.parent, final.parent.parent, root]
    assert synced == [(path.stat().st_ino, path in after) for path in (*before, *after)]


def test_what_a_killed_attempt_left_is_replaced(root: UPath) -> None:
    publish_files(root, "2026-11-29", "daily_report", 1, {"old.html": b"", "report.html": b"old"})
    half_written = root / "2026-11-29" / "daily_report" / f"{ASIDE}1"
    half_written.mkdir()
    (half_written / "report.html").write_bytes(b"half")

    publish_files(root, "2026-11-29", "daily_report", 1, FILES)

    folder = root / "2026-11-29" / "daily_report"
    assert names(folder) == {"v1"}
    assert {path.name: path.read_bytes() for path in (folder / "v1").iterdir()} == FILES


def test_a_location_that_is_none_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(
        FilesUnavailableError, match=r"cannot be written to .*file/reports: Not a directory.*COLLECTION_"
    ):
        publish_files(UPath(tmp_path / "file" / "reports"), "2026-11-29", "daily_report", 1, FILES)


class NoCredentialsError(Exception):
    """As a bucket's library has it, which knows nothing of Python's own OSError."""


@pytest.mark.parametrize("broken", [NoCredentialsError, PermissionError])
@pytest.mark.parametrize("raising", ["_open", "exists"])
def test_a_bucket_that_does_not_answer_is_named_by_the_kind_of_its_error_alone(
    monkeypatch: pytest.MonkeyPatch, broken: type[Exception], raising: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise broken("https://bucket.example/?X-Amz-Signature=secret")

    bucket = UPath(f"memory://{uuid.uuid4().hex}")
    monkeypatch.setattr(type(bucket.fs), raising, refuse)
    with pytest.raises(FilesUnavailableError, match=f"cannot be written to memory://.*: {broken.__name__}\\.") as told:
        publish_files(bucket, "2026-11-29", "daily_report", 1, FILES)

    assert told.value.retryable
    assert "secret" not in "".join(traceback.format_exception(told.value))


def test_on_a_disk_what_is_no_fault_of_the_location_is_not_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise TypeError("a mistake of ours")

    monkeypatch.setattr(os, "fsync", mistaken)
    with pytest.raises(TypeError, match="a mistake of ours"):
        publish_files(UPath(tmp_path), "2026-11-29", "daily_report", 1, FILES)
    assert names(UPath(tmp_path / "2026-11-29" / "daily_report")) == set()
