"""The daily report: a table, and from it page, CSV, workbook, picture and summary. Equal inputs, equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from collection_pipeline.steps.report_inputs import Inputs, Provenance
from collection_pipeline.steps.report_page import page_html, picture_svg, summary_markdown
from collection_pipeline.steps.report_table import changes, table
from collection_pipeline.steps.report_view import view
from collection_pipeline.steps.spreadsheets import csv, workbook
from collection_pipeline.texts import text

__all__ = ["Inputs", "Provenance", "Report", "build"]


@dataclass(frozen=True)
class Report:
    """The rows (`DAILY_REPORT`) and what is made of them; `picture` is SVG, `summary` markdown."""

    frame: pd.DataFrame
    html: str
    csv: bytes
    xlsx: bytes
    picture: str
    summary: str

    @property
    def files(self) -> Mapping[str, bytes]:
        """The files to publish, by name."""
        return {
            "report.html": self.html.encode(),
            "places.csv": self.csv,
            "places.xlsx": self.xlsx,
            "picture.svg": self.picture.encode(),
        }


def build(inputs: Inputs) -> Report:
    """The report of one run."""
    frame = table(inputs.details, inputs.news, inputs.compared, inputs.as_of, inputs.news_top)
    changed = changes(frame, inputs.compared)
    shown = view(inputs, frame, changed)
    sheets = [("Places", frame)]
    if inputs.news is not None:
        sheets.append(("News", inputs.news))
    if changed is not None:
        sheets.append(("Gone", changed.gone))
    return Report(
        frame=frame,
        html=page_html(shown),
        csv=csv(frame),
        xlsx=workbook(_about(inputs), sheets, created=inputs.moment),
        picture=picture_svg(shown),
        summary=summary_markdown(shown),
    )


def _about(inputs: Inputs) -> list[tuple[str, str]]:
    """The first sheet: what the workbook speaks of, and where it comes from."""
    language = inputs.language
    lines = [
        (text(language, "title"), inputs.run_id),
        ("", inputs.first_line),
        (text(language, "source"), inputs.source),
    ]
    if inputs.emulated:
        lines.append(("", text(language, "emulated")))
    if inputs.news is None:
        lines.append((text(language, "news"), inputs.news_missing))
    for item in inputs.provenance:
        facts = (
            f"{text(language, 'as_of_column')} {item.as_of.astimezone(inputs.timezone):%Y-%m-%d %H:%M}",
            text(language, "older_data" if item.degraded else "own_data"),
            f"{text(language, 'rows')} {item.rows:,}",
            f"{text(language, 'credits')} {item.credits:,}",
        )
        lines.append((f"{item.job_id} {item.run_id} v{item.version}", " · ".join(facts)))
    return lines
