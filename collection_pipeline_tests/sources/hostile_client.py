"""Run as a program: asks a server for places 1 to N and prints how each request ended, and the memory it took.

python -m collection_pipeline_tests.sources.hostile_client BASE_URL N
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

from collection_pipeline.sources.contract import parse_body
from collection_pipeline.sources.serpbase import SerpBaseSource
from collection_pipeline.sources.transport import Timeouts
from collection_pipeline_tests.sources.raw_server import KEY, ONCE, allow, details


async def main(base_url: str, count: int) -> None:
    source = SerpBaseSource(
        base_url, KEY, concurrency=16, timeouts=Timeouts(connect_s=20, read_s=4, total_s=8), backoff=ONCE
    )
    ends = {}
    async for attempt in source.stream(details(count), admit=allow):
        number = int(str(attempt.request.params["feature_id"]).split(":")[1], 16)
        if attempt.body is not None:
            json.dumps(parse_body(attempt.body), ensure_ascii=False, allow_nan=False).encode()
        ends[number] = attempt.error.kind if attempt.error else "success"
        assert (attempt.body is None) is (attempt.error is not None)
        assert attempt.final
    sys.stdout.write(json.dumps({"ends": ends, "peak_mb": _peak_mb()}))


def _peak_mb() -> int:
    """The most memory this program held, in MB. From /proc: `ru_maxrss` also counts what its parent held before it."""
    held = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert held is not None
    return int(held[1]) // 1024


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
