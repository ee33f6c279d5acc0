"""Files of an artifact (reports): written aside, then renamed, so that a version's folder is whole or not there.

On a disk all of it is synced on the way: a manifest is committed only when its files would survive a power cut too.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from upath import UPath

ASIDE = ".aside-"
"""How the names of folders begin that are not complete yet."""

_ON_A_DISK = ("", "file", "local")
"""Protocols of locations where a folder is renamed in one step."""


class FilesUnavailableError(Exception):
    """The report location cannot be written, or not be reached."""

    retryable = True


def publish_files(
    root: UPath, run_id: str, job_id: str, version: int, files: Mapping[str, bytes]
) -> list[dict[str, Any]]:
    """Write `files` (name → content) as `root/run_id/job_id/v<version>/` and return what the manifest keeps of each.

    Its `path` counts from `root`: reports that are moved or copied, database and all, are found where they are now.
    What an attempt left there that was killed before its version was committed is replaced.
    Raises `FilesUnavailableError` when the location cannot be written; nothing is left behind.
    """
    folder = root / run_id / job_id
    final = folder / f"v{version}"
    # A bucket knows neither folders nor renaming: there, each file appears whole, and none is named by anything before
    # the version is committed.
    on_a_disk = root.protocol in _ON_A_DISK
    written = folder / f"{ASIDE}{uuid.uuid4().hex}" if on_a_disk else final
    try:
        for leftover in _leftovers(folder, final):
            remove_folder(leftover)
        written.mkdir(parents=True, exist_ok=True)
        try:
            for name, content in files.items():
                (written / name).write_bytes(content)
            if on_a_disk:
                for path in (*(written / name for name in files), written):
                    _sync(path)
                written.rename(final)
                for parent in (folder, folder.parent, root):  # each may be new
                    _sync(parent)
        except BaseException:
            remove_folder(written)
            raise
    except Exception as error:
        if not on_a_disk:
            # Whatever a bucket's library raises, and without it: its words may hold signed addresses.
            raise _unavailable(root, run_id, version, type(error).__name__) from None
        if isinstance(error, OSError):
            raise _unavailable(root, run_id, version, error.strerror or str(error)) from error
        raise
    return [
        {
            "name": name,
            "path": f"{run_id}/{job_id}/{final.name}/{name}",
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in files.items()
    ]


def _unavailable(root: UPath, run_id: str, version: int, problem: str) -> FilesUnavailableError:
    return FilesUnavailableError(
        f"The report files of {run_id} version {version} cannot be written to {root}: {problem}."
        " Make the location (COLLECTION_REPORTS) writable."
    )


def _sync(path: UPath) -> None:
    """Have the disk keep a file's content, or which entries a folder has."""
    descriptor = os.open(Path(path.path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _leftovers(folder: UPath, final: UPath) -> list[UPath]:
    """What killed attempts of this job left: the folder of a version that was not committed, and half-written ones."""
    if not folder.exists():
        return []
    return [each for each in folder.iterdir() if each == final or each.name.startswith(ASIDE)]


def remove_files(root: UPath, files: Iterable[Mapping[str, Any]]) -> None:
    """Remove the files of manifests, and the folders of version, job and run if nothing else is in them."""
    for file in files:
        path = root / file["path"]
        path.unlink(missing_ok=True)
        for folder in list(path.parents)[:3]:
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()


def remove_folder(folder: UPath) -> None:
    """Remove a version's folder and its files, if it is there."""
    if folder.exists():
        folder.fs.rm(folder.path, recursive=True)
