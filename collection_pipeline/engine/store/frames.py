"""Data frames at the border of the store: checked against their data set on the way in, exact types on the way out.

In between, columns are Arrow arrays: conversion, checks and hashing run over whole columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from collection_pipeline.engine.datasets import Column, Dataset, Kind
from collection_pipeline.engine.store.errors import FrameError

# Arrow's own allocator keeps what was freed, 30 MB at 100,000 details. The system's is as fast here.
pa.set_memory_pool(pa.system_memory_pool())

ARROW: Mapping[Kind, pa.DataType] = {
    "text": pa.large_string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "instant": pa.timestamp("us", tz="UTC"),
    "json": pa.large_string(),
}
_EXTENSION_TYPES: Mapping[pa.DataType, pd.api.extensions.ExtensionDtype] = {
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
_NO_VALUE = np.int64(-1)


def schema_of(columns: Iterable[Column]) -> pa.Schema:
    """The Arrow schema of these columns."""
    return pa.schema([(column.name, ARROW[column.kind]) for column in columns])


def to_arrow(frame: pd.DataFrame, dataset: Dataset) -> pa.RecordBatch:
    """The columns of `frame`, in the order and types of the data set. Raises `FrameError` naming the first misfit."""
    names = [column.name for column in dataset.columns]
    if sorted(map(str, frame.columns)) != sorted(names):
        missing = [name for name in names if name not in frame.columns]
        unknown = [str(name) for name in frame.columns if name not in names]
        raise FrameError(
            f"The frame for {dataset.name} does not have the described columns: missing {missing or 'none'}, not"
            f" described {unknown or 'none'}."
        )
    arrays = [_column_to_arrow(frame[column.name], column, dataset) for column in dataset.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(dataset.columns))


def to_frame(table: pa.Table, columns: Sequence[Column]) -> pd.DataFrame:
    """A frame of exactly the types that `engine.datasets` promises, from a table of these columns."""
    frame: pd.DataFrame = table.cast(schema_of(columns)).to_pandas(types_mapper=_EXTENSION_TYPES.get)
    return frame


def _column_to_arrow(series: pd.Series, column: Column, dataset: Dataset) -> pa.Array:
    where, wanted = f"Column {column.name} of {dataset.name}", ARROW[column.kind]
    try:
        # Without the wanted type: Arrow would make 1 of 1.5 and text of numbers without a word.
        array = pa.Array.from_pandas(series)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if array.null_count < len(array) and not _fits(array.type, column.kind):
            raise FrameError(f"{where} has values that are no {column.kind}, but {array.type}.")
        array = array.cast(wanted) if array.null_count < len(array) else pa.nulls(len(array), wanted)
    except UnicodeEncodeError as error:
        raise FrameError(f"{where} has text with a lone surrogate, which no database stores.") from error
    except (pa.ArrowException, OverflowError) as error:
        raise FrameError(f"{where} has values that are no {column.kind}: {error}") from error
    if pa.types.is_timestamp(wanted) and series.dtype == object and _has_naive(series):
        raise FrameError(f"{where} has instants without a time zone; make them aware.")
    if pa.types.is_large_string(wanted) and not _text_bytes(array).all():
        raise FrameError(f"{where} has text with a NUL character (U+0000), which PostgreSQL does not store.")
    return array


def _fits(found: pa.DataType, kind: Kind) -> bool:
    types = pa.types
    fitting: Mapping[Kind, Sequence[Callable[[pa.DataType], bool]]] = {
        "text": (types.is_string, types.is_large_string),
        "json": (types.is_string, types.is_large_string),
        "integer": (types.is_integer,),
        "number": (types.is_floating, types.is_integer),
        "boolean": (types.is_boolean,),
        "instant": (lambda each: types.is_timestamp(each) and each.tz is not None,),
    }
    return any(fits(found) for fits in fitting[kind])


def _has_naive(series: pd.Series) -> bool:
    return any(value.tzinfo is None for value in series.dropna())


class ContentHash:
    """Hash of a frame's content, fed chunk by chunk: equal content gives equal hashes however it was cut into chunks.

    Per column two sha256 streams, one of the values' bytes and one of their lengths (-1 for a missing value), so that
    neither shifting bytes between values nor between columns goes unnoticed. Volatile columns are left out.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._columns = {
            column.name: (column.kind, hashlib.sha256(), hashlib.sha256())
            for column in dataset.columns
            if not column.volatile
        }

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch`, as `to_arrow` made it."""
        for name, (_, values, lengths) in self._columns.items():
            array = batch.column(name)
            present = pc.is_valid(array).to_numpy(zero_copy_only=False)
            if pa.types.is_large_string(array.type):
                sizes = pc.fill_null(pc.cast(pc.binary_length(array), pa.int64()), _NO_VALUE).to_numpy()
                values.update(_text_bytes(array.drop_null() if array.null_count else array).data)
            else:
                sizes = np.where(present, np.int64(1), _NO_VALUE)
                values.update(_fixed_bytes(array))
            lengths.update(np.ascontiguousarray(sizes, dtype="<i8").data)

    def hexdigest(self) -> str:
        """The hash so far, 64 hexadecimal digits."""
        whole = hashlib.sha256()
        for name, (kind, values, lengths) in sorted(self._columns.items()):
            whole.update(f"{name}:{kind}:{values.hexdigest()}:{lengths.hexdigest()}\n".encode())
        return whole.hexdigest()


def _text_bytes(array: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of all values, one after the other, and perhaps of what lies under missing ones."""
    _, offsets, data = array.buffers()
    if data is None:
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, dtype=np.int64, count=len(array) + 1, offset=array.offset * 8)
    return np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]]


def _fixed_bytes(array: pa.Array) -> memoryview:
    """The values as little-endian numbers, zero where missing, and no difference between the two zeros."""
    if pa.types.is_floating(array.type):
        numbers = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False) + 0.0
        return np.ascontiguousarray(numbers, dtype="<f8").data
    whole = array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array.cast(pa.int64())
    return np.ascontiguousarray(pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(), dtype="<i8").data
