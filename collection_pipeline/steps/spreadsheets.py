"""The report's table as CSV and as an XLSX workbook. Both show untrusted texts, and neither can start a formula."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import pandas as pd
import xlsxwriter  # type: ignore[import-untyped]  # it ships no types

from collection_pipeline.steps.untrusted import cell, cells

MAX_ROWS = 1_048_575
"""Rows that a sheet of Excel holds beside its header (Microsoft's specification)."""

_WIDTHS = {"name": 36, "address": 40, "queries": 40, "first_query": 30, "feature_id": 38, "request_id": 38}


def csv(rows: pd.DataFrame) -> bytes:
    """The rows as CSV (RFC 4180) in UTF-8 with a byte order mark, without which Excel garbles Chinese names."""
    return b"\xef\xbb\xbf" + _shown(rows).to_csv(index=False, lineterminator="\r\n").encode()


def workbook(about: Sequence[tuple[str, str]], sheets: Iterable[tuple[str, pd.DataFrame]], created: datetime) -> bytes:
    """A workbook of a first sheet of (name, value) lines and one sheet per frame; equal bytes for equal arguments.

    Rows beyond what a sheet holds are left out, and its last row says how many: the CSV has them all.
    """
    output = io.BytesIO()
    with xlsxwriter.Workbook(output, {"constant_memory": True}) as book:
        book.set_properties({"created": created.replace(tzinfo=None)})
        bold = book.add_format({"bold": True, "bg_color": "#E6EEF0", "bottom": 1})
        first = book.add_worksheet("About")
        first.set_column(0, 0, 24)
        first.set_column(1, 1, 100)
        for row, (name, value) in enumerate(about):
            first.write_string(row, 0, cell(name))
            first.write_string(row, 1, cell(value))
        for title, rows in sheets:
            _write_sheet(book.add_worksheet(title), rows, bold)
    return output.getvalue()


def _write_sheet(sheet: Any, rows: pd.DataFrame, header: Any) -> None:
    shown = _shown(rows.head(MAX_ROWS if len(rows) <= MAX_ROWS else MAX_ROWS - 1))
    for column, name in enumerate(shown.columns):
        sheet.write_string(0, column, name, header)
        sheet.set_column(column, column, _WIDTHS.get(name, 16))
    sheet.freeze_panes(1, 0)
    if len(shown):
        sheet.autofilter(0, 0, len(shown), len(shown.columns) - 1)
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in shown.dtypes]
    writers = [sheet.write_number if is_number else sheet.write_string for is_number in numeric]
    present = shown.notna().to_numpy()
    # Rows in order: a sheet in constant memory forgets each row when the next begins.
    for row, values in enumerate(zip(*(shown[name].tolist() for name in shown.columns), strict=True)):
        for column in present[row].nonzero()[0].tolist():
            writers[column](row + 1, column, values[column])
    if len(shown) < len(rows):
        sheet.write_string(len(shown) + 1, 0, f"{len(rows) - len(shown)} more rows are in the CSV file")


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with instants in ISO 8601 (UTC) and every text made inert."""
    shown = {}
    for name in rows.columns:
        values = rows[name]
        if isinstance(values.dtype, pd.DatetimeTZDtype):
            shown[name] = values.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        else:
            shown[name] = values if pd.api.types.is_numeric_dtype(values) else cells(values)
    return pd.DataFrame(shown)
