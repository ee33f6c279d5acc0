"""Files of an artifact (reports): written aside, then renamed, so that a version's folder is whole or not there."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any

from upath import UPath


class FilesUnavailableError(Exception):
    """The report location cannot be written."""

    retryable = True


def publish_files(root: UPath, run_id: str, version: int, files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Write `files` (name → content) as `root/run_id/v<version>/` and return what the manifest keeps of each.

    A folder of that name left by an attempt that was killed before its version was committed is replaced.
    Raises `FilesUnavailableError` when the location cannot be written; nothing is left behind.
    """
    final = root / run_id / f"v{version}"
    aside = root / run_id / f".{uuid.uuid4().hex}"
    try:
        aside.mkdir(parents=True)
        try:
            for name, content in files.items():
                (aside / name).write_bytes(content)
            remove_folder(final)
            aside.rename(final)
        except BaseException:
            remove_folder(aside)
            raise
    except OSError as error:
        raise FilesUnavailableError(
            f"The report files of {run_id} version {version} cannot be written to {root}: {error.strerror or error}."
            " Make the location (COLLECTION_REPORTS) writable."
        ) from error
    return [
        {
            "name": name,
            "path": str(final / name),
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in files.items()
    ]


def remove_folder(folder: UPath) -> None:
    """Remove a version's folder and its files, if it is there."""
    if folder.exists():
        folder.fs.rm(folder.path, recursive=True)
