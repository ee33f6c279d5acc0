"""What breaks in the surroundings of a process; each is done in it before it starts to work."""

from __future__ import annotations

import ctypes
import os
from functools import partial
from typing import Any

import dagster as dg


def impatient() -> None:
    """Wait for what is away, locked or full for moments instead of minutes: the tests know that it stays so."""
    from collection_pipeline.engine.jobs import recording
    from collection_pipeline.engine.store import database

    recording.PATIENCE_S = 0.2
    database.BUSY_TIMEOUT_S = 1
    dg.RetryPolicy.calculate_delay = _a_moment  # type: ignore[method-assign]


def _a_moment(self: dg.RetryPolicy, attempt_num: int) -> float:
    return 0.1


def room_for(pages: int, name: str) -> None:
    """The disk has room for so many more pages of the SQLite files whose names end so."""
    import sqlalchemy as sa

    impatient()
    sa.event.listen(sa.Engine, "connect", partial(_limit, pages, name))


def _limit(pages: int, name: str, connection: Any, _record: object) -> None:
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    if not path.endswith(name):
        return
    (used,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={used + pages}")


def without_privileges() -> None:
    """Root obeys the rights of files like anybody else (Linux: the capability DAC_OVERRIDE is given up)."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 bits
    assert libc.capget(header, sets) == 0
    sets[0] &= ~(1 << 1)
    assert libc.capset(header, sets) == 0
