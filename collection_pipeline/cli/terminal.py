"""What reaches the terminal: results on stdout, everything else on stderr.

All of it passes through `inert`: names and error texts come from strangers, and no character does more than it shows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from collection_pipeline.engine.visible import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

STYLES = {
    "done": "green",
    "running": "cyan",
    "failed": "bold red",
    "skipped": "yellow",
    "pending": "dim",
}
"""Of a cell that begins with this word, a status."""


def inert(text: str) -> str:
    """The text line by line, every control, direction and invisible character shown by its code point."""
    return "\n".join(f"{line[: len(line) - len(line.lstrip(' '))]}{visible(line)}" for line in text.split("\n"))


def result(text: str) -> None:
    """A line of the result, on stdout."""
    click.echo(inert(text))


def note(text: str) -> None:
    """A line for people about what goes on, on stderr."""
    click.echo(inert(text), err=True)


def result_json(value: Any) -> None:
    """The result for machines: one line on stdout, in ASCII, so that no stranger's character reaches a terminal."""
    click.echo(json.dumps(value))


def console(stream: TextIO | None = None) -> Console:
    """A rich console on stdout or another stream, which takes every text literally."""
    from rich.console import Console

    return Console(file=stream, markup=False, highlight=False, emoji=False)


def is_terminal() -> bool:
    """Whether a person is looking at stdout."""
    return sys.stdout.isatty()


NARROWEST = 40
"""Characters that the last column of a table needs beside the others; in less, it stands on lines of its own."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> RenderableType:
    """Rows as a rich table in `width` characters; cells are made inert."""
    from rich.cells import cell_len
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    beside = columns(head[:-1], [row[:-1] for row in rows])
    needed = min(NARROWEST, max((cell_len(visible(row[-1])) for row in rows), default=0) + 2)
    if width - max(map(cell_len, beside)) < needed:
        lines: list[RenderableType] = [Text(beside[0], "bold")]
        for line, row in zip(beside[1:], rows, strict=True):
            style = next((STYLES[word] for cell in row if (word := cell.partition(",")[0]) in STYLES), "")
            lines += [Text(line, style), Padding(Text(visible(row[-1])), (0, 0, 0, 2))]
        return Group(*lines)
    made = Table(box=None, pad_edge=False, header_style="bold")
    for position, name in enumerate(head):
        made.add_column(name, no_wrap=position < len(head) - 1, overflow="fold")
    for row in rows:
        made.add_row(*(Text(visible(cell), STYLES.get(cell.partition(",")[0], "")) for cell in row))
    return made


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as lines of aligned columns, as wide as they need to be: for files and pipes."""
    from rich.cells import cell_len, set_cell_size

    cells = [list(head), *([visible(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    ]
