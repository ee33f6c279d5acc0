"""A disk that is really full: a file system of a few megabytes, in a mount namespace that only a command sees.

Linux lets everybody make one (man 7 user_namespaces), unless the machine forbids it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 300

_MOUNTED = 'mount -t tmpfs -o size="$1"m none "$2" && shift 2 && exec "$@"'


def on_small_disk(folder: Path, megabytes: int, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the command where `folder` is a disk of this size. Raises `OSError` if there is no unshare (util-linux)."""
    mounted = ["sh", "-c", _MOUNTED, "sh", str(megabytes), str(folder)]
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        namespace, back = ["unshare", "--mount"], []
    else:
        # Mounting takes being root of a namespace; PostgreSQL refuses root, so the command is itself again.
        namespace = ["unshare", "--map-root-user", "--mount"]
        back = ["unshare", "--user", f"--map-user={user}", f"--map-group={group}"]
    return subprocess.run(
        [*namespace, *mounted, *back, *command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )


def fill(folder: Path) -> Path:
    """Leave no room at all on the disk of `folder`; the file to remove makes it again."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1_000_000))
    return filler
