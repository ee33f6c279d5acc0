"""The report drawn: templates in `templates/`, where every value is escaped and every untrusted text made inert."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from typing import Any

import jinja2

from collection_pipeline.engine.visible import visible
from collection_pipeline.steps import untrusted
from collection_pipeline.steps.report_view import REQUEST_IDS_SHOWN, View
from collection_pipeline.texts import text


def page_html(view: View) -> str:
    """One self-contained HTML page: no script, and nothing loaded from anywhere."""
    return _render("report.html.jinja", view)


def picture_svg(view: View) -> str:
    """The report's main figures as one SVG picture of 960 × 480."""
    return _render("picture.svg.jinja", view)


def summary_markdown(view: View) -> str:
    """A few lines of markdown, the first of which says how old the data is."""
    t = partial(text, view.language)
    inputs = view.inputs

    def labelled(key: str, value: str) -> str:
        return t("labelled", label=t(key), value=value)

    lines = [f"**{view.first_line}**"]
    if inputs.emulated:
        lines.append(f"⚠ {t('emulated')}")
    if inputs.degraded:
        lines.append(f"⚠ {t('degraded_inputs', inputs=_names(view))}")
    figures = [labelled("places", f"{view.places.total:,}")]
    if inputs.coverage is not None:
        figures.append(labelled("coverage", percent(inputs.coverage.share)))
    if view.new is not None and view.gone is not None:
        figures.append(labelled("changes_tile", f"{view.new.total:,} / {view.gone.total:,}"))
    if view.news is not None:
        figures.append(labelled("news", f"{view.news.total:,}"))
    lines.append(" · ".join(figures))
    if view.news is None:
        lines.append(labelled("news", inputs.news_missing))
    top = [f"{row['position']}. {untrusted.markdown(row['name'])}" for row in view.places.rows[:5]]
    return "\n\n".join([*lines, "\n".join(top)]) + "\n"


def percent(share: float) -> str:
    """A share as people write it; never "100 %" for less than all, nor "0 %" for more than nothing."""
    if 0 < share < 1:
        return f"{min(max(share * 100, 0.1), 99.9):.1f} %"
    return f"{share * 100:.0f} %"


def _names(view: View) -> str:
    return ", ".join(f"{item.job_id} {item.run_id} v{item.version}" for item in view.inputs.degraded)


def _render(template: str, view: View) -> str:
    inputs = view.inputs

    def local(moment: datetime) -> str:
        return f"{moment.astimezone(inputs.timezone):%Y-%m-%d %H:%M}"

    context: dict[str, Any] = {
        "view": view,
        "inputs": inputs,
        "t": partial(text, view.language),
        "local": local,
        "degraded_names": _names(view),
        "request_ids_shown": REQUEST_IDS_SHOWN,
    }
    return _environment().get_template(template).render(context)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("collection_pipeline.steps"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "visible": visible,
        "shortened": untrusted.shortened,
        "link": untrusted.link,
        "percent": percent,
        "thousands": "{:,}".format,
    }
    environment.filters.update(filters)
    return environment
