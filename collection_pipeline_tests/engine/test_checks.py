"""What makes an artifact unusable, and what is only said aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest

from collection_pipeline.engine.checks import (
    AnyVolume,
    CallCounts,
    CheckOutcome,
    Coverage,
    Evidence,
    Fruitful,
    Present,
    Schema,
    UniqueKey,
    Volume,
)
from collection_pipeline.engine.datasets import Column, Dataset
from collection_pipeline.engine.declarations import DeclarationError
from collection_pipeline.engine.jobs.schema_check import KEPT_MESSAGES, checked


@dataclass(frozen=True)
class Rows:
    """Staged rows of which only the aggregates are known."""

    row_count: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    repeated: int = 0

    def nulls(self) -> Mapping[str, int]:
        return self.missing

    def duplicates(self, columns: Sequence[str] | None = None) -> int:
        return self.repeated if columns else 0


def verdict(outcome: CheckOutcome) -> str:
    return "passes" if outcome.passed else "fails" if outcome.rejects else "warns"


def calls(answered: int, missing: int, not_found: int = 0) -> Evidence:
    return Evidence(Rows(answered), CallCounts(answered + missing + not_found, answered, not_found, missing))


@pytest.mark.parametrize(
    ("answered", "missing", "expected"),
    [(10, 0, "passes"), (9, 1, "warns"), (8, 2, "warns"), (7, 3, "fails"), (0, 10, "fails"), (0, 0, "passes")],
)
def test_coverage_fails_under_its_hard_line_and_warns_under_its_soft_one(
    answered: int, missing: int, expected: str
) -> None:
    assert verdict(Coverage(hard=0.8).evaluate(calls(answered, missing))) == expected


@pytest.mark.parametrize(("hard", "soft"), [(90, 95), (0.9, 0.5), (-0.1, 1), (0.5, 1.5), (float("nan"), 1)])
def test_coverage_takes_two_shares_in_order(hard: float, soft: float) -> None:
    with pytest.raises(DeclarationError, match=r"^test_checks\.py:\d+: .* write shares, 0 <= hard <= soft <= 1"):
        Coverage(hard, soft)


@pytest.mark.parametrize(
    "wrong",
    [{"min_rows": -1}, {"min_share": 50}, {"min_share": -0.5}, {"rows_severity": "warn"}, {"share_severity": ""}],
)
def test_volume_takes_a_number_a_share_and_severities(wrong: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match=rf"^test_checks\.py:\d+: Volume\(.*{next(iter(wrong))}="):
        Volume(**wrong)


def test_a_data_set_is_of_known_kinds_and_its_key_of_its_columns() -> None:
    wrong: Any = "string"
    here = r"^test_checks\.py:\d+: "
    with pytest.raises(DeclarationError, match=here + "column id has the kind 'string'; write one of text, "):
        Column("id", wrong, "which")
    with pytest.raises(DeclarationError, match=here + "the key of data set places names ids, which is no column of it"):
        Dataset("places", (Column("id", "text", "which"),), key=("ids",))


def test_what_does_not_exist_is_neither_answered_nor_missing() -> None:
    outcome = Coverage(hard=0.8).evaluate(calls(answered=4, missing=0, not_found=6))
    assert verdict(outcome) == "passes"
    assert outcome.description == "4 of 4 calls answered (100.0%), 0 missing; 6 not found at the source"
    assert outcome.metadata == {"coverage": 1.0, "answered": 4, "missing": 0, "not_found": 6}


def test_what_most_calls_ended_with_is_said() -> None:
    counts = CallCounts(10, answered=4, missing=6, commonest_error="HTTP 500 (5 of 6)")
    outcome = Coverage(hard=0.8).evaluate(Evidence(Rows(4), counts))
    assert outcome.description == "4 of 10 calls answered (40.0%), 6 missing: HTTP 500 (5 of 6)"


@pytest.mark.parametrize(
    ("check", "rows", "expected"),
    [
        (Volume(min_rows=10, min_share=0.5), 50, "passes"),
        (Volume(min_rows=10, min_share=0.5), 49, "fails"),
        (Volume(min_rows=10, min_share=0.5, share_severity="soft"), 49, "warns"),
        (Volume(min_rows=10, min_share=0.5, share_severity="soft"), 9, "fails"),
        (Volume(min_rows=10, min_share=0.5, rows_severity="soft"), 9, "fails"),
        (Volume(min_rows=60, min_share=0.5, rows_severity="soft"), 55, "warns"),
        (Volume(min_rows=10, min_share=None, rows_severity="soft"), 9, "warns"),
        (Volume(min_rows=10, min_share=None), 10, "passes"),
        (AnyVolume(why="some days have none"), 0, "passes"),
    ],
)
def test_each_floor_of_the_volume_is_hard_or_soft_on_its_own(
    check: Volume | AnyVolume, rows: int, expected: str
) -> None:
    assert verdict(check.evaluate(Evidence(Rows(rows), usual_rows=(90, 100, 110)))) == expected


def test_in_the_first_run_only_the_floor_in_rows_counts() -> None:
    assert verdict(Volume(min_rows=1, min_share=0.5).evaluate(Evidence(Rows(1)))) == "passes"


@pytest.mark.parametrize(
    ("check", "blocking"),
    [
        (Volume(), True),
        (Volume(rows_severity="soft"), True),
        (Volume(rows_severity="soft", share_severity="soft"), False),
        (Volume(rows_severity="soft", min_share=None), False),
        (AnyVolume(why="some days have none"), False),
    ],
)
def test_volume_blocks_if_one_of_its_floors_is_hard(check: Volume | AnyVolume, blocking: bool) -> None:
    assert check.blocking is blocking


def test_the_way_out_says_why() -> None:
    outcome = AnyVolume(why="some days have none").evaluate(Evidence(Rows(0)))
    assert outcome.description == "0 rows; any number is fine: some days have none"


def test_a_column_that_is_empty_throughout_fails() -> None:
    assert verdict(Present("name").evaluate(Evidence(Rows(3, {"name": 3})))) == "fails"
    assert verdict(Present("name").evaluate(Evidence(Rows(3, {"name": 2})))) == "passes"


def test_what_was_asked_for_and_found_nothing_is_named_in_a_warning() -> None:
    check = Fruitful("queries")
    outcome = check.evaluate(
        Evidence(Rows(20), found={"airports in Iceland (en, is)": 20, "coffee in Berlin (en, de)": 0})
    )
    assert verdict(outcome) == "warns"
    assert outcome.description == "1 of 2 queries found nothing: coffee in Berlin (en, de)"
    assert verdict(check.evaluate(Evidence(Rows(20), found={"airports in Iceland (en, is)": 20}))) == "passes"
    many = check.evaluate(Evidence(Rows(0), found=dict.fromkeys("abcdefg", 0)))
    assert many.description == "7 of 7 queries found nothing: a; b; c; d; e; and 2 more"


def test_a_repeated_key_fails() -> None:
    outcome = UniqueKey(("id",)).evaluate(Evidence(Rows(3, repeated=1)))
    assert (verdict(outcome), outcome.description) == ("fails", "1 row with the key of an earlier one")
    assert verdict(UniqueKey(("id",)).evaluate(Evidence(Rows(3)))) == "passes"


PLACES = Dataset("places", (Column("id", "text", "which", nullable=False), Column("rank", "integer", "where")))


def frame(ids: Sequence[str | None], ranks: Sequence[int], rank_type: str = "Int64") -> pd.DataFrame:
    return pd.DataFrame({"id": list(ids), "rank": list(ranks)}).astype({"id": "str", "rank": rank_type})


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (frame(["a", None], [1, 2]), "id: not_nullable (1 row)"),
        (frame(["a"], [1], "float64"), "dtype"),
        (frame(["a"], [1]).drop(columns="rank"), "column_in_dataframe"),
        (frame(["a"], [1]).assign(more=1), "column_in_schema"),
        (frame(["a"], [1])[["rank", "id"]], "column_ordered"),
    ],
)
def test_rows_other_than_described_fail_and_are_passed_on_as_they_are(broken: pd.DataFrame, named: str) -> None:
    errors: list[str] = []
    passed = list(checked([frame(["a"], [1]), broken], PLACES, errors))

    assert passed[1] is broken
    outcome = Schema().evaluate(Evidence(Rows(2), schema_errors=errors))
    assert verdict(outcome) == "fails"
    assert named in outcome.description


def test_rows_as_described_pass() -> None:
    errors: list[str] = []
    assert len(list(checked([frame(["a"], [1]), frame([], [])], PLACES, errors))) == 2
    assert verdict(Schema().evaluate(Evidence(Rows(1), schema_errors=errors))) == "passes"


def test_only_the_first_messages_about_a_schema_are_kept() -> None:
    errors: list[str] = []
    list(checked([frame([None], [1])] * (KEPT_MESSAGES + 5), PLACES, errors))
    assert len(errors) == KEPT_MESSAGES
