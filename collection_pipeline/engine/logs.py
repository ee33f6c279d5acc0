"""The collection's own log. In a step it is written to Dagster's database as well, which may be away just then."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any


class _Harmless(logging.LoggerAdapter[logging.Logger]):
    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """As a logger does, but what cannot be written anywhere costs nothing else."""
        with suppress(Exception):
            super().log(level, msg, *args, **{"stacklevel": 2, **kwargs})  # who says it is whoever called this


def log_of(part: str) -> logging.LoggerAdapter[logging.Logger]:
    """The log of one part of the collection, of good news too. Saying something in it never raises."""
    log = logging.getLogger(f"collection_pipeline.{part}")
    log.setLevel(logging.INFO)
    return _Harmless(log)
