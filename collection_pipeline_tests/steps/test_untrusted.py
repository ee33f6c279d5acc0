"""Texts that strangers wrote are shown and do nothing: in the page, the spreadsheets, the summary and the picture."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from xml.etree import ElementTree

import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collection_pipeline.engine.visible import visible
from collection_pipeline.steps import untrusted
from collection_pipeline.steps.report import Report, build
from collection_pipeline_tests.steps.answers import place
from collection_pipeline_tests.steps.reports import details, inputs, mentions
from collection_pipeline_tests.steps.test_report import Page

HOSTILE = [
    "https://evil.example/login",
    "<script>alert(1)</script>",
    "</title></style></svg><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' onfocus=alert(1) autofocus '",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- --><![CDATA[ x ]]>",
    "&lt;b&gt; &amp;amp;",
    "=1+1",
    '=HYPERLINK("https://evil.example","click")',
    "+1-202-555-0100",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\u3000=1+1",
    "\u00a0=1+1",
    "\u200b=1+1",
    "\ufeff=1+1",
    "＝1+1",
    "＋1",
    "－1",
    "＠SUM(1)",
    "﹢1",
    "safe\n=1+1",
    'a",=1+1,"b',
    "[click](javascript:alert(1))",
    "![x](https://evil.example/p.png)",
    "`code` ``` **bold** | table | # heading",
    "\u202eevil\u202c",
    "\u2066isolate\u2069 \u200fmark\u061c",
    "nul\x00 bell\x07 escape\x1b[31mred\x1b[0m del\x7f c1\x9b31m",
    "'; DROP TABLE jobs; --",
    "Robert'); DROP TABLE artifacts;--",
    "lone surrogate \ud83d",
    "line\u2028paragraph\u2029",
    "\ufffe\uffff noncharacters",
    "zalgo" + "\u0335" * 300,
    "long" * 20_000,
]


@pytest.fixture(scope="module", params=["first", "last"])
def report(request: pytest.FixtureRequest) -> Report:
    """Every hostile text as every text of a place and of a news item; the page lists the first or the last of them."""
    texts = HOSTILE if request.param == "first" else HOSTILE[::-1]
    places = details([_place(index, text) for index, text in enumerate(texts)])
    items = [
        {"title": text, "link": text, "source": text, "time": text, "published_at": text, "snippet": text}
        for text in HOSTILE
    ]
    before = build(inputs(details=details([_place(index + 100, text) for index, text in enumerate(HOSTILE)])))
    return build(
        inputs(
            details=places,
            news=mentions(places, items),
            previous=before.frame,
            previous_run_id="2026-11-28",
        )
    )


def _place(index: int, text: str) -> dict[str, object]:
    texts = dict.fromkeys(("name", "address", "phone", "website", "google_maps_url", "description"), text)
    return place(index, **texts, types=[text])


def test_the_page_holds_only_elements_attributes_and_links_of_its_own(report: Report) -> None:
    page = Page(report.html)
    own = Page(build(inputs(details=details([place(0, website="https://a.example")]))).html)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in own.tags} | {"li", "ul"}
    allowed = {name for _, attributes in own.tags for name in attributes}
    assert {name for _, attributes in page.tags for name in attributes} <= allowed
    links = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert links == {"https://evil.example/login"}


def test_the_page_and_the_picture_show_no_character_that_hides_or_turns_text(report: Report) -> None:
    for shown in (report.html, report.picture, report.summary):
        hidden = {character for character in shown if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn")}
        assert hidden <= {"\n"}
    ElementTree.fromstring(report.picture)


def test_a_character_that_turns_text_is_named_instead() -> None:
    page = build(inputs(details=details([_place(0, "\u202eevil\u202c")]))).html
    assert "[U+202E]evil[U+202C]" in page


def test_no_cell_of_the_csv_starts_a_formula(report: Report) -> None:
    rows = list(csv.reader(io.StringIO(report.csv.decode("utf-8-sig"), newline="")))
    numeric = {index for index, name in enumerate(rows[0]) if pd.api.types.is_numeric_dtype(report.frame[name])}
    assert len(rows) == len(report.frame) + 1
    for row in rows:
        assert len(row) == len(rows[0])
        for index, value in enumerate(row):
            assert_inert(value, number=row is not rows[0] and index in numeric)


def test_no_cell_of_the_workbook_is_or_starts_a_formula_or_a_link(report: Report) -> None:
    book = openpyxl.load_workbook(io.BytesIO(report.xlsx))
    assert book.sheetnames == ["About", "Places", "News", "Gone"]
    for sheet in book:
        for row in sheet.iter_rows():
            for found in row:
                assert found.data_type in ("s", "n")
                assert found.hyperlink is None
                if isinstance(found.value, str):
                    assert_inert(found.value, number=False)
                    assert len(found.value) <= untrusted.MAX_CELL


def test_the_summary_shows_names_as_code_and_nothing_else_of_them(report: Report) -> None:
    without_code = re.sub(r"`[^`\n]*`", "", report.summary)
    for word in ("script", "onerror", "evil", "javascript", "DROP", "HYPERLINK"):
        assert word not in without_code
    assert report.summary.count("`") % 2 == 0


def test_the_rows_keep_the_texts_as_they_came(report: Report) -> None:
    names = set(report.frame["name"])
    assert {"<script>alert(1)</script>", "=1+1", "'; DROP TABLE jobs; --"} <= names


@given(st.text(st.characters()))
def test_any_text_is_inert_as_a_cell(text: str) -> None:
    assert_inert(untrusted.cell(text), number=False)
    untrusted.cell(text).encode()


@given(st.text(st.characters()))
def test_any_text_is_one_visible_line(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert visible(shown) == shown


def test_words_in_any_script_stay_as_they_are() -> None:
    for text in ("Zürich", "東京国際空港", "مطار", "नमस्ते", "می\u200cخواهم", "👩\u200d✈️", "O'Hare", "50 % off"):
        assert visible(text) == text
        assert untrusted.cell(text) == text


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://a.example/x?y=1&z=2#f", True),
        ("http://a.example", True),
        ("HTTPS://A.EXAMPLE", True),
        ("javascript:alert(1)", False),
        (" https://a.example", False),
        ("java\tscript:alert(1)", False),
        ("https://a.example/\n", False),
        ("data:text/html,x", False),
        ("//a.example", False),
        ("https:", False),
        ("https://[bad", False),
        ("https://a.example/\u202e", False),
        ("ftp://a.example", False),
        ("https://a.example/" + "x" * 3000, False),
        (None, False),
        (float("nan"), False),
    ],
)
def test_only_web_addresses_become_links(url: object, allowed: bool) -> None:
    assert untrusted.link(url) == (url if allowed else None)


def assert_inert(value: str, *, number: bool) -> None:
    if number:
        assert value == "" or float(value) is not None
    else:
        assert unicodedata.normalize("NFKC", value).lstrip()[:1] not in tuple("=+-@")
        assert not set(value) & set("\t\r\n\x00")
