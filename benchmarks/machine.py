"""The machine that the figures are from: without it they mean nothing."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("dagster", "pandas", "pyarrow", "sqlalchemy", "aiohttp", "psycopg", "adbc-driver-sqlite")


def facts() -> dict[str, str]:
    """Date, processor, memory, versions, and how busy the machine was when this was asked."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB, {platform.system()}",
        "load": f"{os.getloadavg()[0]:.1f} over the last minute, from others and from us",
        "python": sys.version.split()[0],
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
