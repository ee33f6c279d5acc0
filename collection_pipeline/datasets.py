"""The data sets of the four assets, each described once: its table, data frame types and schema check follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from collection_pipeline.engine.datasets import Column, Dataset, Kind


def _columns(kind: Kind, names: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(name, kind, description) for name, description in names)


_FEATURE_ID = Column("feature_id", "text", "The place's id at the source, 0x…:0x…", nullable=False)
_NAME = Column("name", "text", "Display name", nullable=False)

_TRACE = (
    Column("request_id", "text", "The API call that this row was read from", nullable=False, volatile=True),
    Column("fetched_at", "instant", "When that answer arrived", nullable=False, volatile=True),
)

_PLACE = (
    _NAME,
    *_columns("text", [("place_id", "The other public id, ChIJ…"), ("category", "First of the place's types")]),
    *_columns("json", [("types", "All types, as the source gives them")]),
    *_columns("number", [("rating", "Mean rating, 0 to 5")]),
    *_columns("integer", [("review_count", "Number of reviews")]),
    *_columns(
        "text",
        [
            ("address", "Address in one line"),
            ("phone", "Telephone number, international where given"),
            ("website", "The place's own site, as given: not checked, not safe to open"),
            ("google_maps_url", "The place on the map, as given"),
        ],
    ),
    *_columns("number", [("latitude", "Degrees, -90 to 90"), ("longitude", "Degrees, -180 to 180")]),
)

_SEEN = (
    Column("best_rank", "integer", "Best rank among the queries that found the place, from 1", nullable=False),
    Column("first_query", "text", "The query of that rank; the file's first where several share it", nullable=False),
    Column("queries", "json", 'Every query that found it: [{"query": …, "rank": …}]', nullable=False),
)

SEARCH_RESULTS = Dataset(
    "search_results",
    (
        Column("query", "text", "The query's name: q (hl, gl) and coordinates", nullable=False),
        _FEATURE_ID,
        Column("rank", "integer", "Rank within the query across its pages, from 1", nullable=False),
        Column("page", "integer", "The page it stood on, from 1", nullable=False),
        Column("q", "text", "What was searched for", nullable=False),
        Column("hl", "text", "Language asked for", nullable=False),
        Column("gl", "text", "Country asked for", nullable=False),
        *_PLACE,
        *_TRACE,
    ),
    key=("query", "feature_id"),
)
"""One row per query and place: a place that two queries found has two rows, each with its rank."""

DETAIL_PAGES = Dataset(
    "detail_pages",
    (
        _FEATURE_ID,
        *_SEEN,
        Column("hl", "text", "Language asked for", nullable=False),
        Column("gl", "text", "Country asked for", nullable=False),
        *_PLACE,
        Column("description", "text", "What the source says about the place"),
        *_columns(
            "json",
            [
                ("hours", "Opening hours, as the source gives them"),
                ("open_status", "Open or closed, as the source gives it"),
                ("attributes", "Attributes, as the source gives them"),
                ("extra", "Every other field of the answer"),
            ],
        ),
        *_TRACE,
    ),
    key=("feature_id",),
)
"""One row per place, fetched once, with what the search knew about it: which queries found it, and how high."""

NEWS_MENTIONS = Dataset(
    "news_mentions",
    (
        _FEATURE_ID,
        Column("place_name", "text", "Name of the place that was asked about", nullable=False),
        Column("rank", "integer", "Order within the place's news, from 1", nullable=False),
        Column("title", "text", "Headline", nullable=False),
        *_columns(
            "text",
            [
                ("link", "The article, as given: not checked, not safe to open"),
                ("source", "Who published it"),
                ("time_text", "Relative time in the source's words, such as '3 hours ago'"),
                ("published_at", "When it was published, in the source's words; not always a date"),
                ("snippet", "Excerpt"),
                ("thumbnail_url", "Picture, as given"),
            ],
        ),
        *_TRACE,
    ),
    key=("feature_id", "rank"),
)
"""One row per place and news item about it, for the top places of the run."""

DAILY_REPORT = Dataset(
    "daily_report",
    (
        Column("position", "integer", "Order in the report, from 1", nullable=False),
        _FEATURE_ID,
        Column("data_as_of", "instant", "The moment the row's data speaks of", nullable=False),
        *_SEEN,
        Column("change", "text", "Against the previous report: new, up, down or same; missing if not compared"),
        Column("previous_rank", "integer", "best_rank in the previous report"),
        *(column for column in _PLACE if column.name not in {"types", "place_id"}),
        Column("news_count", "integer", "News items about the place; missing when none were asked for"),
        *_TRACE,
    ),
    key=("feature_id",),
)
"""The report's table, the same rows as in its CSV and XLSX files."""

DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset for dataset in (SEARCH_RESULTS, DETAIL_PAGES, NEWS_MENTIONS, DAILY_REPORT)
}
"""All of them, by the name that is also their job's: how a job finds what its upstreams stored."""
