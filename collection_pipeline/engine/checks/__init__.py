"""Checks on staged data: what makes an artifact unusable (hard) and what is only said aloud (soft).

A check is declared beside its asset and evaluated between write and publish, on what the transaction has staged. The
verdict that counts is the engine's; Dagster shows the same outcomes as the asset's own checks.
"""

from collection_pipeline.engine.checks.contract import (
    CallCounts,
    Check,
    CheckOutcome,
    Evidence,
    StagedRows,
    audit,
)
from collection_pipeline.engine.checks.standard import (
    COVERAGE,
    DEGRADED_INPUTS,
    OMITTED_INPUTS,
    VOLUME,
    AnyVolume,
    Coverage,
    Fruitful,
    Present,
    Schema,
    UniqueKey,
    Volume,
    calls_covered,
)

__all__ = [
    "COVERAGE",
    "DEGRADED_INPUTS",
    "OMITTED_INPUTS",
    "VOLUME",
    "AnyVolume",
    "CallCounts",
    "Check",
    "CheckOutcome",
    "Coverage",
    "Evidence",
    "Fruitful",
    "Present",
    "Schema",
    "StagedRows",
    "UniqueKey",
    "Volume",
    "audit",
    "calls_covered",
]
