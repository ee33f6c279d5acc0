"""What Dagster is told about a published version: check results, metadata, and the inputs that were really read."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pandas as pd
from upath import UPath

from collection_pipeline.engine.checks import COVERAGE
from collection_pipeline.engine.store import Attempt, Published
from collection_pipeline.engine.visible import visible

PICTURE = "picture.svg"
"""A file of this name is shown with the materialization."""

SUMMARY = "summary"
"""Metadata under this name is markdown."""

MAX_CELL = 80


def check_results(published: Published) -> Iterator[dg.AssetCheckResult]:
    """The engine's verdicts as the asset's own checks."""
    for outcome in published.checks:
        yield dg.AssetCheckResult(
            check_name=outcome.name,
            passed=outcome.passed,
            severity=dg.AssetCheckSeverity.ERROR if outcome.severity == "hard" else dg.AssetCheckSeverity.WARN,
            description=outcome.description,
            metadata=dict(outcome.metadata),
        )


def materialization(
    attempt: Attempt, published: Published, reports: UPath, preview: pd.DataFrame | None, picture: bytes | None
) -> dg.MaterializeResult[Any]:
    """The version as Dagster's catalogue shows it. `reports` is where its files are."""
    artifact, manifest = published.artifact, published.manifest
    metadata: dict[str, Any] = {
        "dagster/row_count": published.row_count,
        "version": artifact.version,
        "as_of": dg.TimestampMetadataValue(artifact.as_of.timestamp()),
        "degraded": artifact.degraded,
        "source": manifest.source,
        "credits_charged": manifest.credits_charged,
        "credits_reused": manifest.credits_reused,
        **manifest.metadata,
    }
    coverage = next((check.metadata for check in published.checks if check.name == COVERAGE), None)
    if coverage is not None:
        metadata["coverage"] = coverage["coverage"]
    if isinstance(metadata.get(SUMMARY), str):
        metadata[SUMMARY] = dg.MarkdownMetadataValue(metadata[SUMMARY])
    if attempt.inputs:
        metadata["inputs"] = dg.TableMetadataValue(_input_records(attempt), _INPUT_SCHEMA)
    if preview is not None and not preview.empty:
        metadata["preview"] = dg.MarkdownMetadataValue(preview_table(preview))
    if picture is not None:
        encoded = base64.b64encode(picture).decode()
        metadata["picture"] = dg.MarkdownMetadataValue(f"![report](data:image/svg+xml;base64,{encoded})")
    for file in manifest.files:
        metadata[file["name"]] = dg.PathMetadataValue(str(reports / file["path"]))
    return dg.MaterializeResult(
        asset_key=artifact.job_id,
        metadata=metadata,
        data_version=dg.DataVersion(artifact.content_hash),
        tags=_read_versions(attempt),
    )


_READ = "dagster/input_data_version"

_NOTHING = "none"
"""Stands for the data version of an input that was left out."""


def _read_versions(attempt: Attempt) -> dict[str, str]:
    """The tags that say which versions were really read.

    Dagster stamps the same partition's newest upstream version as input, whatever the body read, and would call a
    report on yesterday's data fresh. What is older than the run is therefore named once more, with its partition: no
    dependency that Dagster knows, so it shows the asset as stale, with the partition read as the reason, until a
    version without it is made. These tags are no documented contract, so a test watches them.
    """
    tags = {}
    for upstream, artifact in attempt.inputs.items():
        tags[f"{_READ}/{upstream}"] = _NOTHING if artifact is None else artifact.content_hash
        if artifact is not None and artifact.stands_on_older_data(attempt.run_id):
            tags[f"{_READ}/{upstream}/{artifact.run_id}"] = artifact.content_hash
    return tags


_INPUT_SCHEMA = dg.TableSchema([dg.TableColumn(name) for name in ("upstream", "run_id", "version", "as_of", "policy")])


def _input_records(attempt: Attempt) -> list[dg.TableRecord]:
    policies = {edge.upstream: edge.policy for edge in attempt.job.edges}
    return [
        dg.TableRecord(
            {
                "upstream": upstream,
                "run_id": artifact.run_id if artifact else "left out",
                "version": artifact.version if artifact else "",
                "as_of": artifact.as_of.isoformat() if artifact else "",
                "policy": policies[upstream],
            }
        )
        for upstream, artifact in attempt.inputs.items()
    ]


def preview_table(frame: pd.DataFrame) -> str:
    """A table of rows. Cells hold what a source said: one short code span each, in which nothing has a meaning."""
    lines = [list(frame.columns), ["---"] * len(frame.columns)]
    lines += [[_cell(value) for value in row] for row in frame.astype(object).itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    text = "" if pd.isna(value) else visible(str(value))
    shortened = text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"
    return f"`{shortened.translate(_ENDS_CELL)}`" if shortened else ""


_ENDS_CELL = str.maketrans({"`": "ˋ", "|": "¦"})
"""The two characters that would end a code span or a table cell, and what is shown for them."""
