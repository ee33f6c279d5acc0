"""Every text of the report, English and Chinese side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True, slots=True)
class Text:
    """One text in both languages, with `{placeholders}`. `one` is the English singular, for n = 1."""

    en: str
    zh: str
    one: str | None = None

    def to(self, language: Language, **values: object) -> str:
        """The text in `language`, its placeholders filled; numbers get thousands separators."""
        template = self.zh if language == "zh" else self.one if self.one and values.get("n") == 1 else self.en
        return template.format(**{name: _shown(value) for name, value in values.items()})


TEXTS: Mapping[str, Text] = {
    # The first line.
    "as_of": Text("data as of {date}{age}{collected}", "数据截至 {date}{age}{collected}"),
    "age": Text(" ({words})", "（{words}）"),
    "today": Text("today", "今日"),
    "earlier_today": Text("earlier today", "今日稍早"),
    "collected": Text(", collected on {date}", "，采集于 {date}"),
    "yesterday": Text("yesterday", "昨日"),
    "days_ago": Text("{n} days ago", "{n} 天前"),
    # Head.
    "title": Text("Daily report", "日报"),
    "run": Text("Run", "批次"),
    "source": Text("Source", "数据源"),
    "emulated": Text(
        "Data of the built-in emulator, for trying out: not from the real service.",
        "内置模拟器的数据，仅供试用，并非来自真实服务。",
    ),
    "labelled": Text("{label}: {value}", "{label}：{value}"),
    "degraded": Text("Built on older data.", "基于较早的数据。"),
    "degraded_inputs": Text(
        "This run's own data was not available. The report stands on {inputs}.",
        "本批次的数据不可用，本日报基于 {inputs}。",
    ),
    "made_at": Text("The times are those of {timezone}.", "时间均为 {timezone} 时区。"),
    # Figures.
    "places": Text("Places", "地点"),
    "coverage": Text("Coverage", "覆盖率"),
    "coverage_of": Text("{answered} of {wanted} detail pages", "{wanted} 个详情页中的 {answered} 个"),
    "coverage_full": Text("Every detail page was fetched.", "所有详情页均已获取。"),
    "coverage_missing": Text("{n} could not be fetched.", "{n} 个未能获取。"),
    "coverage_not_found": Text(
        "{n} do not exist at the source.", "{n} 个在数据源中不存在。", one="{n} does not exist at the source."
    ),
    "coverage_elsewhere": Text(
        "These are the detail pages of run {run_id}; this run has none.",
        "以上为批次 {run_id} 的详情页；本批次没有详情页。",
    ),
    "answered": Text("fetched", "已获取"),
    "not_found": Text("not found", "不存在"),
    "missing": Text("missing", "缺失"),
    "unknown": Text("unknown", "未知"),
    "rating_mean": Text("Mean rating", "平均评分"),
    "reviews": Text("{n} reviews", "{n} 条评价", one="{n} review"),
    "rated": Text("{n} rated", "{n} 个有评分"),
    "shared": Text("{n} found by several queries", "{n} 个被多个查询找到"),
    "changes_tile": Text("New / gone", "新增 / 消失"),
    "moved_n": Text("{n} moved in rank", "{n} 个排名变化"),
    "first_report": Text("first report", "首份日报"),
    "same_data": Text("on the same data as before", "数据与上次相同"),
    "news": Text("News", "新闻"),
    "news_about": Text("about {n} places", "涉及 {n} 个地点", one="about {n} place"),
    # Sections.
    "top_places": Text("Top places", "热门地点"),
    "top_order": Text(
        "Ordered by best rank among the queries, then by how many queries found the place.",
        "按各查询中的最佳排名排序，其次按找到该地点的查询数。",
    ),
    "place": Text("Place", "地点"),
    "rating": Text("Rating", "评分"),
    "found_by": Text("Found by", "查询与排名"),
    "change": Text("Change", "变化"),
    "change_new": Text("new", "新增"),
    "change_up": Text("up from {rank}", "由第 {rank} 名上升"),
    "change_down": Text("down from {rank}", "由第 {rank} 名下降"),
    "change_same": Text("unchanged", "不变"),
    "left_out": Text(
        "{n} more places are in the CSV and XLSX files.",
        "其余 {n} 个地点见 CSV 与 XLSX 文件。",
        one="{n} more place is in the CSV and XLSX files.",
    ),
    "and_more": Text("and {n} more", "另有 {n} 个"),
    "no_places": Text("There is no place to report on.", "没有可列出的地点。"),
    "map": Text("Where they are", "地点分布"),
    "map_alt": Text(
        "Map of {n} places; a larger dot stands for more places.", "{n} 个地点的分布图，点越大表示地点越多。"
    ),
    "map_grid": Text("Grey dots: the world's airports, for orientation.", "灰点为全球机场，仅供定位参考。"),
    "by_query": Text("Places by query", "各查询的地点数"),
    "by_category": Text("Places by category", "各类别的地点数"),
    "by_rating": Text("Places by rating", "各评分的地点数"),
    "chart_alt": Text("Bar chart, {title}: {values}.", "条形图，{title}：{values}。"),
    "other": Text("other", "其他"),
    "no_category": Text("no category", "无类别"),
    "no_values": Text("The source gave no values for this.", "数据源未提供相关数值。"),
    # What changed.
    "changes": Text("What changed", "变化"),
    "changes_since": Text("Compared with the report of run {run_id}.", "与批次 {run_id} 的日报相比。"),
    "changes_none": Text("Nothing changed since the report of run {run_id}.", "与批次 {run_id} 的日报相比没有变化。"),
    "changes_first": Text(
        "This is the first report; there is nothing to compare it with.", "这是首份日报，尚无可比较的内容。"
    ),
    "changes_same_data": Text(
        "The report of run {run_id} stands on the same data; there is nothing to compare.",
        "批次 {run_id} 的日报基于同一份数据，没有可比较的内容。",
    ),
    "new": Text("New", "新增"),
    "gone": Text("Gone", "消失"),
    "moved": Text("Moved in rank", "排名变化"),
    "nothing": Text("none", "无"),
    "rank_was": Text("was {rank}", "原第 {rank} 名"),
    "rank": Text("rank {rank}", "第 {rank} 名"),
    # News.
    "news_none": Text("No news was found about the top {n} places.", "未找到前 {n} 个地点的相关新闻。"),
    "news_failed": Text("This section is missing: the news could not be collected.", "本部分缺失：新闻采集失败。"),
    "news_skipped": Text(
        "This section is missing: news was skipped for this run.", "本部分缺失：本批次跳过了新闻采集。"
    ),
    "news_pending": Text("This section is missing: news has not been collected.", "本部分缺失：尚未采集新闻。"),
    "news_running": Text("This section is missing: the news was not ready in time.", "本部分缺失：新闻未能按时就绪。"),
    "news_done": Text("This section is missing: the news was withdrawn.", "本部分缺失：新闻已被撤回。"),
    # Provenance.
    "provenance": Text("Where the data comes from", "数据来源"),
    "provenance_of": Text(
        "Every row of the files names the API call it was read from (request_id).",
        "文件中的每一行都注明其来源 API 调用（request_id）。",
    ),
    "artifact": Text("Artifact", "数据产物"),
    "version": Text("Version", "版本"),
    "as_of_column": Text("As of", "截至"),
    "rows": Text("Rows", "行数"),
    "credits": Text("Credits", "额度"),
    "request_ids": Text("Request ids", "请求 ID"),
    "request_ids_more": Text("and {n} more", "另有 {n} 个"),
    "own_data": Text("of this run", "本批次"),
    "older_data": Text("older than the run", "早于本批次"),
}


def text(language: Language, key: str, /, **values: object) -> str:
    """The text of that key. Raises KeyError for an unknown key or an unfilled placeholder."""
    return TEXTS[key].to(language, **values)


def as_of_line(
    language: Language,
    as_of: datetime,
    moment: datetime,
    collected_at: datetime,
    timezone: tzinfo,
    *,
    is_older: bool = False,
) -> str:
    """What the data speaks of and how old that was at the run's moment, counted in calendar days of the time zone.

    "data as of 2026-11-28 (yesterday)"; a moment of the same day before the run's shows its time as well, and so does
    the moment of an earlier run with this one's, which `is_older` says. What was collected after the run's day, or
    before the day it speaks of, says so and is never called today's: "(yesterday), collected on 2026-12-29".
    """
    local, run, collected = (instant.astimezone(timezone) for instant in (as_of, moment, collected_at))
    days = (run.date() - local.date()).days
    date = local.date().isoformat()
    is_earlier = days == 0 and (as_of < moment or is_older)
    if is_earlier:
        date = f"{date} {local:%H:%M}"
    if days in (0, 1):
        words = text(language, "yesterday" if days else "earlier_today" if is_earlier else "today")
    else:
        words = text(language, "days_ago", n=days)
    age, late = text(language, "age", words=words), ""
    if not local.date() <= collected.date() <= run.date():
        age = age if days else ""
        late = text(language, "collected", date=collected.date().isoformat())
    return text(language, "as_of", date=date, age=age, collected=late)


def first_line(
    language: Language,
    as_of: datetime,
    moment: datetime,
    collected_at: datetime,
    timezone: tzinfo,
    *,
    is_older: bool = False,
) -> str:
    """`as_of_line` in both languages, that of the report first."""
    order = (language, *(other for other in LANGUAGES if other != language))
    return " · ".join(as_of_line(each, as_of, moment, collected_at, timezone, is_older=is_older) for each in order)


def _shown(value: object) -> object:
    return f"{value:,}" if isinstance(value, int) else value
