"""The fault language, and which requests a fault hits."""

from __future__ import annotations

import pytest

from collection_pipeline.sources.contract import ApiRequest
from collection_pipeline.sources.emulator.faults import FAULTS, TARGETS, Fault, Faults, FaultSyntaxError, parse_faults


def request(number: int = 1) -> ApiRequest:
    return ApiRequest("maps_detail", {"feature_id": f"0x1:{number:#x}"})


def hits(faults: Faults, count: int = 1000, seed: int = 0) -> set[int]:
    return {n for n in range(count) if faults.decide(request(n), seed=seed, arrival=n + 1, attempt=1)}


def test_no_text_is_no_faults() -> None:
    assert parse_faults(" \n, ") == Faults()


def test_rules_with_share_and_conditions() -> None:
    text = (
        "maps_detail=upstream_error:0.3@status=1503, maps_search = empty_result @first=2\nnews=rate_limit@retry_after=7"
    )
    assert parse_faults(text).rules == (
        Fault("maps_detail", "upstream_error", 0.3, status=1503),
        Fault("maps_search", "empty_result", first=2),
        Fault("news", "rate_limit", retry_after=7),
    )


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_fault_on_every_endpoint(target: str, name: str) -> None:
    [fault] = parse_faults(f"{target}={name}").rules
    assert (fault.endpoint, fault.name, fault.share) == (target, name, 1)


@pytest.mark.parametrize(
    "text",
    [
        "*=timeout@seconds=0.5@charged=yes",
        "maps_detail=not_found:0.25@feature_id=0x1:0x2",
        "search=slow@tries=1@seconds=2, news=malformed_body",
    ],
)
def test_the_text_of_faults_reads_back_the_same(text: str) -> None:
    assert str(parse_faults(text)) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("maps_detail", "endpoint=fault"),
        ("maps_detail=", "endpoint=fault"),
        ("=timeout", "endpoint=fault"),
        ("maps_detail=timeout@first", "endpoint=fault"),
        ("detail=timeout", "unknown endpoint 'detail'; known are search, news, maps_search, maps_detail, *"),
        ("maps_detail=explode", "unknown fault 'explode'; known are rate_limit, upstream_error"),
        ("maps_detail=timeout@colour=red", "unknown condition 'colour'; known are first, tries"),
        ("maps_detail=timeout:2", "share must be a number from 0 to 1, not '2'"),
        ("maps_detail=timeout:nan", "share must be"),
        ("maps_detail=timeout:x", "share must be"),
        ("maps_detail=timeout@first=-1", "first must be a whole number"),
        ("maps_detail=timeout@first=²", "first must be a whole number"),
        ("maps_detail=slow@seconds=inf", "seconds must be a number"),
        ("maps_detail=upstream_error@status=1004", "status must be one of 1500, 1502, 1503, 1504"),
        ("maps_detail=timeout@charged=maybe", "known are no, yes"),
    ],
)
def test_a_mistake_is_named_together_with_what_would_be_right(text: str, complaint: str) -> None:
    with pytest.raises(FaultSyntaxError) as error:
        parse_faults(f"news=slow, {text}")
    assert complaint in str(error.value)
    assert text in str(error.value)


def test_a_share_hits_about_so_many_requests_and_always_the_same() -> None:
    faults = parse_faults("maps_detail=timeout:0.3")
    assert 250 < len(hits(faults)) < 350
    assert hits(faults) == hits(faults)
    assert hits(faults, seed=1) != hits(faults)


def test_a_share_decides_anew_for_every_try_of_a_request() -> None:
    faults = parse_faults("*=timeout:0.5")
    tries = [bool(faults.decide(request(), seed=0, arrival=1, attempt=attempt)) for attempt in range(1, 21)]
    assert True in tries
    assert False in tries


def test_share_0_hits_nothing() -> None:
    assert not hits(parse_faults("maps_detail=timeout:0"))


def test_conditions_narrow_a_rule() -> None:
    assert hits(parse_faults("maps_detail=timeout@first=3")) == {0, 1, 2}
    assert hits(parse_faults("maps_detail=timeout@feature_id=0x1:0x7")) == {7}
    assert not hits(parse_faults("maps_search=timeout"))
    assert not parse_faults("*=timeout@tries=1").decide(request(), seed=0, arrival=9, attempt=2)


def test_the_first_rule_that_applies_decides() -> None:
    faults = parse_faults("maps_detail=timeout@first=1, *=slow")
    found = [faults.decide(request(), seed=0, arrival=arrival, attempt=1) for arrival in (1, 2)]
    assert [fault.name for fault in found if fault] == ["timeout", "slow"]
