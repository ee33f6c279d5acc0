"""The daily report: its first line, its sections, what changed, and that it stays small, whole and the same."""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import openpyxl
import pandas as pd
import pytest

from collection_pipeline.datasets import DAILY_REPORT
from collection_pipeline.engine.checks import CallCounts
from collection_pipeline.engine.datasets import DTYPES
from collection_pipeline.steps.report import build
from collection_pipeline.steps.report_page import percent
from collection_pipeline.texts import Language
from collection_pipeline_tests.steps.answers import feature_id, place
from collection_pipeline_tests.steps.reports import YESTERDAY, artifact, details, inputs, mentions


class Page(HTMLParser):
    """What a reader sees, and whether every element is closed."""

    VOID = ("meta", "br", "img", "input", "link", "hr")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if data.strip() and "body" in self.open:
            self.texts.append(" ".join(data.split()))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_report_on_older_data_says_so_in_its_first_line_in_both_languages(language: Language) -> None:
    report = build(
        inputs(as_of=YESTERDAY, language=language, provenance=[artifact(run_id="2026-11-28", degraded=True)])
    )
    both = ["data as of 2026-11-28 (yesterday)", "数据截至 2026-11-28（昨日）"]
    line = " · ".join(both if language == "en" else both[::-1])
    page = Page(report.html)
    assert page.texts[0] == line
    assert report.summary.splitlines()[0] == f"**{line}**"
    assert line in report.picture
    assert any("detail_pages 2026-11-28 v2" in text for text in page.texts)
    assert workbook(report.xlsx)["About"]["B2"].value == line
    assert set(report.frame["data_as_of"]) == {pd.Timestamp(YESTERDAY)}


def test_a_report_on_its_own_day_makes_no_such_fuss() -> None:
    report = build(inputs())
    page = Page(report.html)
    assert page.texts[0] == "data as of 2026-11-29 (today) · 数据截至 2026-11-29（今日）"
    assert "Built on older data." not in page.texts
    assert "⚠" not in report.summary


def test_a_report_of_a_day_whose_data_was_collected_later_says_when() -> None:
    later = YESTERDAY + timedelta(days=9)
    assert Page(build(inputs(collected_at=later)).html).texts[0] == (
        "data as of 2026-11-29, collected on 2026-12-07 · 数据截至 2026-11-29，采集于 2026-12-07"
    )


def test_the_emulator_never_passes_for_the_real_service() -> None:
    said = "Data of the built-in emulator, for trying out: not from the real service."
    report = build(inputs(emulated=True, source="emulator (synthetic)"))
    assert said in Page(report.html).texts
    assert said in report.picture
    assert said in report.summary
    assert said in [row[1].value for row in workbook(report.xlsx)["About"].iter_rows()]
    real = build(inputs())
    assert said not in real.html + real.picture + real.summary


def test_the_table_has_the_data_sets_columns_types_and_order() -> None:
    frame = build(inputs()).frame
    assert {str(name): str(dtype) for name, dtype in frame.dtypes.items()} == {
        column.name: DTYPES[column.kind] for column in DAILY_REPORT.columns
    }
    assert frame["position"].tolist() == list(range(1, 33))
    assert frame["feature_id"].is_unique
    shared = frame.set_index("feature_id").loc[feature_id(25)]
    assert shared["best_rank"] == 1
    assert len(json.loads(str(shared["queries"]))) == 2
    assert frame["feature_id"].tolist()[:2] == [feature_id(25), feature_id(0)], "two queries come before one"


def test_what_changed_is_told_apart_as_new_gone_and_moved() -> None:
    before = build(inputs(details=details([place(i) for i in (0, 1, 2, 3)])))
    after = build(
        inputs(details=details([place(i) for i in (1, 0, 2, 9)]), previous=before.frame, previous_run_id="2026-11-28")
    )
    changes = after.frame.set_index("feature_id")[["change", "previous_rank"]]
    assert changes.loc[[feature_id(i) for i in (1, 0, 2, 9)]].values.tolist() == [
        ["up", 2],
        ["down", 1],
        ["same", 3],
        ["new", pd.NA],
    ]
    page = Page(after.html)
    assert "Compared with the report of run 2026-11-28." in page.texts
    for said in ("up from 2", "down from 1", "unchanged"):
        assert any(said in text for text in page.texts)
    assert page.texts[page.texts.index("Gone") + 1] == "1"
    gone = workbook(after.xlsx)["Gone"]
    assert [row[1].value for row in gone.iter_rows(min_row=2)] == [feature_id(3)]


def test_nothing_changed_and_nothing_to_compare_with_are_said() -> None:
    first = build(inputs())
    assert first.frame["change"].isna().all()
    assert "This is the first report; there is nothing to compare it with." in Page(first.html).texts
    other_answers = first.frame.assign(request_id="of yesterday")
    second = build(inputs(previous=other_answers, previous_run_id="2026-11-28"))
    assert set(second.frame["change"]) == {"same"}
    assert "Nothing changed since the report of run 2026-11-28." in Page(second.html).texts


@pytest.mark.parametrize(
    ("language", "said", "in_short"),
    [
        (
            "en",
            "The report of run 2026-11-28 stands on the same data; there is nothing to compare.",
            "on the same data as before",
        ),
        ("zh", "批次 2026-11-28 的日报基于同一份数据，没有可比较的内容。", "数据与上次相同"),
    ],
)
def test_data_is_not_compared_with_itself(language: Language, said: str, in_short: str) -> None:
    first = build(inputs())
    second = build(inputs(language=language, previous=first.frame, previous_run_id="2026-11-28"))
    page = Page(second.html)
    assert {said, in_short} <= set(page.texts)
    assert second.frame["change"].isna().all()
    assert not {"unchanged", "不变", "0 / 0"} & set(page.texts)
    assert "0 / 0" not in second.picture + second.summary
    assert "Gone" not in workbook(second.xlsx).sheetnames


def test_news_is_shown_with_its_own_words_for_its_age() -> None:
    places = details([place(0)])
    item = {"title": "A new route", "link": "https://news.example/1", "source": "Example Times", "time": "3 hours ago"}
    report = build(inputs(details=places, news=mentions(places, [item])))
    page = Page(report.html)
    assert {"A new route", "Example Times", "3 hours ago"} <= set(page.texts)
    assert report.frame["news_count"].tolist() == [1]


def test_one_place_does_not_fill_the_news_on_the_page() -> None:
    places = details([place(0), place(1)])
    items = [{"title": f"Item {number}", "link": f"https://news.example/{number}"} for number in range(9)]
    report = build(inputs(details=places, news=mentions(places, items)))
    page = Page(report.html)
    assert [text for text in page.texts if text.startswith("Item")] == ["Item 0", "Item 1"] * 2
    assert "and 14 more" in page.texts
    assert workbook(report.xlsx)["News"].max_row == 19


def test_news_that_is_missing_is_no_news_that_was_not_found() -> None:
    places = details([place(i) for i in range(12)])
    missing = build(inputs(details=places, news=None, news_status="failed"))
    assert "This section is missing: the news could not be collected." in Page(missing.html).texts
    assert "the news could not be collected" in missing.summary
    chinese = build(inputs(details=places, news=None, news_status="skipped", language="zh"))
    assert "本部分缺失：本批次跳过了新闻采集。" in Page(chinese.html).texts
    assert missing.frame["news_count"].isna().all()
    none = build(inputs(details=places, news=mentions(places, [])))
    assert "No news was found about the top 10 places." in Page(none.html).texts
    assert none.frame["news_count"].tolist() == [0] * 10 + [pd.NA] * 2


def test_coverage_tells_what_does_not_exist_from_what_could_not_be_fetched() -> None:
    page = Page(build(inputs(coverage=CallCounts(requested=86, answered=82, not_found=2, missing=2))).html)
    assert {"97.6 %", "82 of 84 detail pages"} <= set(page.texts)
    assert "2 could not be fetched. 2 do not exist at the source." in page.texts
    assert "unknown" in Page(build(inputs(coverage=None)).html).texts


def test_coverage_says_of_which_run_the_detail_pages_are_if_not_of_this_one() -> None:
    own = Page(build(inputs()).html)
    assert "Every detail page was fetched." in own.texts
    older = Page(build(inputs(provenance=[artifact(run_id="2026-11-28", degraded=True)])).html)
    elsewhere = "These are the detail pages of run 2026-11-28; this run has none."
    assert f"Every detail page was fetched. {elsewhere}" in older.texts


@pytest.mark.parametrize(
    ("share", "said"), [(1.0, "100 %"), (0.99999, "99.9 %"), (0.5, "50.0 %"), (0.00001, "0.1 %"), (0.0, "0 %")]
)
def test_a_percentage_never_rounds_to_all_or_nothing(share: float, said: str) -> None:
    assert percent(share) == said


def test_provenance_goes_down_to_versions_and_request_ids() -> None:
    page = Page(build(inputs(provenance=[artifact(run_id="2026-11-28", degraded=True)])).html)
    assert {"detail_pages", "2026-11-28", "5b0f6c1e-7b1d", "and 28 more", "older than the run"} <= set(page.texts)


def test_the_page_needs_nothing_from_outside_and_runs_nothing() -> None:
    page = Page(build(inputs(details=details([place(0, website="https://a.example/x")]))).html)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert "src" not in attributes
        if tag == "a":
            assert attributes["href"] == "https://a.example/x"
            assert attributes["rel"] == "noopener noreferrer nofollow"
    policies = [attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]


def test_the_picture_is_xml_that_stands_alone() -> None:
    root = ElementTree.fromstring(build(inputs(emulated=True)).picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "href" not in {name for element in root.iter() for name in element.attrib}


def test_charts_and_map_survive_places_that_say_nothing_but_their_name() -> None:
    bare = [{"name": f"Place {i}", "feature_id": feature_id(i)} for i in range(3)]
    page = Page(build(inputs(details=details(bare))).html)
    assert page.texts.count("The source gave no values for this.") == 2, "neither ratings nor coordinates"
    assert "map" not in {attributes.get("class") for _, attributes in page.tags}
    assert "no category" in page.texts
    assert "Mean rating" not in page.texts


def test_a_report_on_nothing_is_still_a_page() -> None:
    report = build(inputs(details=details([]), coverage=CallCounts(), provenance=()))
    assert "There is no place to report on." in Page(report.html).texts
    assert len(report.frame) == 0
    ElementTree.fromstring(report.picture)
    assert pd.read_csv(io.BytesIO(report.csv)).columns.tolist() == [column.name for column in DAILY_REPORT.columns]


def test_many_places_make_no_large_page_and_none_is_left_out_of_the_files() -> None:
    few = details([place(i) for i in range(50)])
    many = pd.concat([few.assign(feature_id=few["feature_id"] + f":{n:x}") for n in range(100)], ignore_index=True)
    report = build(inputs(details=many))
    assert len(report.html) < 300_000
    assert "4,975 more places are in the CSV and XLSX files." in Page(report.html).texts
    assert len(pd.read_csv(io.BytesIO(report.csv))) == 5000
    assert workbook(report.xlsx)["Places"].max_row == 5001


def test_csv_and_workbook_hold_the_table_with_numbers_as_numbers() -> None:
    report = build(inputs())
    table = pd.read_csv(io.BytesIO(report.csv))
    assert report.csv.startswith(b"\xef\xbb\xbf")
    assert table["feature_id"].tolist() == report.frame["feature_id"].tolist()
    assert table["latitude"].tolist() == report.frame["latitude"].tolist()
    assert set(table["data_as_of"]) == {"2026-11-29T00:00:00Z"}
    rows = list(workbook(report.xlsx)["Places"].iter_rows(values_only=True))
    assert rows[0] == tuple(column.name for column in DAILY_REPORT.columns)
    by_name = dict(zip(rows[0], rows[1], strict=True))
    assert by_name["position"] == 1
    assert by_name["latitude"] == report.frame["latitude"][0]
    assert by_name["change"] is None


def test_equal_inputs_make_equal_bytes_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(inputs())
    later = time.time() + 86_400 * 400
    monkeypatch.setattr(time, "time", lambda: later)
    assert build(inputs()).files == first.files
    assert workbook(first.xlsx).properties.created == datetime(2026, 11, 29)  # noqa: DTZ001 - the format has no zone


def test_times_on_the_page_are_those_of_the_runs_time_zone() -> None:
    moment = datetime(2026, 11, 28, 16, tzinfo=UTC)
    shanghai = inputs(moment=moment, as_of=moment - timedelta(hours=24), timezone=ZoneInfo("Asia/Shanghai"))
    page = Page(build(shanghai).html)
    assert page.texts[0].startswith("data as of 2026-11-28 (yesterday)")
    assert any("Asia/Shanghai" in text for text in page.texts)


def test_a_run_that_kept_no_zone_but_its_offset_has_a_page_as_well() -> None:
    page = Page(build(inputs(timezone=timezone(timedelta(hours=8)))).html)
    assert any("UTC+08:00" in text for text in page.texts)
    assert "2026-11-29 08:00" in page.texts, "the artifact's as_of, midnight in UTC"


def workbook(xlsx: bytes) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(xlsx))
