"""The schema check: a pandera schema read off a data set's description, applied to frames as they pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaErrors

from collection_pipeline.engine.counting import counted
from collection_pipeline.engine.datasets import DTYPES, Dataset

KEPT_MESSAGES = 20


def schema_of(dataset: Dataset) -> pa.DataFrameSchema:
    """The pandera schema of a data set: exactly its columns, their types, and values where required."""
    return pa.DataFrameSchema(
        {column.name: pa.Column(DTYPES[column.kind], nullable=column.nullable) for column in dataset.columns},
        strict=True,
        ordered=True,
        name=dataset.name,
    )


def checked(frames: Iterable[pd.DataFrame], dataset: Dataset, errors: list[str]) -> Iterator[pd.DataFrame]:
    """Pass frames on unchanged, adding to `errors` one message per column and rule that rows break (the first few)."""
    schema = schema_of(dataset)
    for frame in frames:
        try:
            schema.validate(frame, lazy=True)
        except SchemaErrors as found:
            cases = found.failure_cases.groupby(["column", "check"], dropna=False, sort=False).size()
            for (column, check), count in cases.items():
                if len(errors) < KEPT_MESSAGES:
                    errors.append(f"{column}: {check} ({counted(count, 'row')})")
        yield frame
