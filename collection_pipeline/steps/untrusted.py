"""Texts that strangers wrote, made inert for each place they are shown in: page, spreadsheet, markdown.

The stored rows keep the texts as they came; these functions only concern what is shown.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from collection_pipeline.engine.visible import visible

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"\s*[=+\-@]")

MAX_CELL = 32_767
"""Characters that a cell of a spreadsheet holds (Microsoft's specification of Excel)."""


def cell(text: str) -> str:
    """The text as a spreadsheet cell: visible, no longer than a cell, and never the start of a formula.

    A leading = + - @, also in full width or behind white space, gets an apostrophe before it: spreadsheets take what
    follows as text, in the file itself as well as when it is saved or pasted elsewhere.
    """
    shown = visible(text)
    if _FORMULA.match(unicodedata.normalize("NFKC", shown[:64])):
        shown = f"'{shown}"
    return shown if len(shown) <= MAX_CELL else f"{shown[: MAX_CELL - 1]}…"


def cells(column: pd.Series[str]) -> pd.Series[str]:
    """`cell` over a column of text; what is missing stays missing."""
    return column.map(cell, na_action="ignore").astype("str")


def link(url: object) -> str | None:
    """The address if a browser may be sent there: http or https with a host, in printable ASCII; else None."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url or len(url) > 2_000:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None


def shortened(text: str, length: int) -> str:
    """Visible text of at most `length` characters, with an ellipsis where something was cut."""
    shown = visible(text)
    return shown if len(shown) <= length else f"{shown[: length - 1].rstrip()}…"


def markdown(text: str, length: int = 80) -> str:
    """The text as a code span, in which markdown has no meaning."""
    return f"`{shortened(text, length).replace('`', 'ˋ') or ' '}`"
