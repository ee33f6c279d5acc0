"""What is printed, seen by a terminal and by a pipe."""

from __future__ import annotations

import io

from rich.console import Console

from collection_pipeline.cli.progress import Bars
from collection_pipeline.cli.terminal import columns, inert, table


def test_lines_and_indentation_stay_and_everything_hidden_becomes_visible() -> None:
    assert inert("  type:\n    a\x1b[2J\u202eb\u200f") == "  type:\n    a[U+001B][2J[U+202E]b[U+200F]"


def test_columns_line_up_also_with_wide_characters_and_carry_no_trailing_space() -> None:
    assert columns(("place", "n"), [("東京", "1"), ("Oslo", "20"), ("a\nb", "")]) == [
        "place  n",
        "東京   1",
        "Oslo   20",
        "a b",
    ]


def test_a_table_takes_markup_literally() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, color_system=None)
    console.print(table(("job", "status"), [("[red]x[/red]", "done"), (":bomb:", "\x1b[31mfailed")], console.width))
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "[red]x[/red]" in shown
    assert ":bomb:" in shown
    assert "\x1b[31m" not in shown


def test_on_a_narrow_terminal_the_reason_stands_below_its_row() -> None:
    console = Console(file=io.StringIO(), width=50)
    reason = "failed: " + "a long story " * 5
    console.print(table(("job", "status", "reason"), [("details", "failed", reason), ("report", "done", "")], 50))
    shown = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # a StringIO
    assert [line.strip() for line in shown[:2]] == ["job      status", "details  failed"]
    assert all(line.startswith("  ") for line in shown[2:4])
    assert " ".join(map(str.strip, shown[2:4])) == reason.strip()


def test_a_short_last_cell_stays_beside_its_row_as_long_as_it_fits() -> None:
    row = ("2026-11-29", "settled", "4 done")
    for width, lines in ((len("  ".join(row)), 2), (len("  ".join(row)) - 1, 3)):
        console = Console(file=io.StringIO(), width=width)
        console.print(table(("run", "state", "jobs"), [row], width))
        assert len(console.file.getvalue().splitlines()) == lines  # type: ignore[attr-defined]  # a StringIO


def test_bars_follow_the_calls_of_a_job_and_go_with_it() -> None:
    bars = Bars(io.StringIO())
    bars.started("detail_pages")
    bars.calls("detail_pages", 3, 10)
    (task,) = bars.progress.tasks
    assert (task.description, task.completed, task.total) == ("detail_pages", 3, 10)
    bars.ended("detail_pages")
    assert not bars.progress.tasks
