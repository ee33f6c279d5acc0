"""What is known of an asset before it runs: its body, data set, edges and checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collection_pipeline.engine.checks import Check
from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.planning.edges import Edge


@dataclass(frozen=True)
class Declaration:
    """What the decorator was told about one asset; `body` takes a `JobContext` and one argument per edge."""

    job_id: str
    body: Callable[..., Any]
    dataset: Dataset
    edges: tuple[Edge, ...]
    checks: tuple[Check, ...]
    max_retries: int = 0
