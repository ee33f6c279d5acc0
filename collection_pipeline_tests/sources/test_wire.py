"""What one answer means: a success, or an error of the right kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collection_pipeline.sources.contract import (
    CREDITS,
    ApiRequest,
    MalformedResponseError,
    NotFoundError,
    OutOfCreditsError,
    SourceError,
    TerminalSourceError,
    TransientSourceError,
    UnauthorizedError,
)
from collection_pipeline.sources.wire import RESULT_KEYS, Verdict, judge
from collection_pipeline_tests.sources.raw_server import DETAIL, KEY, failure, success

SEARCH = ApiRequest("maps_search", {"q": "tea house"})


def verdict(body: Mapping[str, Any] | bytes, http_status: int = 200, request: ApiRequest = DETAIL) -> Verdict:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return judge(request, http_status, raw, secret=KEY, retry_after_s=None)


def error(body: Mapping[str, Any] | bytes, http_status: int = 200) -> SourceError:
    found = verdict(body, http_status).error
    assert found is not None
    return found


class TestSuccess:
    def test_has_its_body_request_id_and_credits(self) -> None:
        found = verdict(success())
        assert (found.status, found.request_id, found.credits_charged, found.error) == (0, "r-1", 2, None)
        assert found.body == json.dumps(success()).encode()

    @pytest.mark.parametrize("place", [{}, None])
    def test_with_nothing_found_is_a_success(self, place: object) -> None:
        assert verdict(success(place=place)).error is None

    def test_without_the_result_key_is_a_success(self) -> None:
        body = success()
        del body["place"]
        assert verdict(body).body is not None

    def test_status_may_be_written_as_a_float(self) -> None:
        assert verdict(b'{"status": 0.0, "credits_charged": 2.0}').credits_charged == 2

    @pytest.mark.parametrize("request_id", [None, 17, "", "  ", "x" * 101, "two\nlines", ["r"]])
    def test_without_a_usable_request_id_gets_a_local_one_each(self, request_id: object) -> None:
        one, other = verdict(success(request_id=request_id)), verdict(success(request_id=request_id))
        assert one.request_id is not None
        assert one.request_id.startswith("local-")
        assert one.request_id != other.request_id

    @pytest.mark.parametrize("stated", [None, "2", True, -1, 1.5, 10**30, [2]])
    def test_that_does_not_say_what_it_cost_is_counted_at_list_price(self, stated: object) -> None:
        assert verdict(success(credits_charged=stated)).credits_charged == CREDITS["maps_detail"]

    def test_that_was_free_is_free(self) -> None:
        assert verdict(success(credits_charged=0)).credits_charged == 0

    @pytest.mark.parametrize("endpoint", RESULT_KEYS)
    def test_has_the_result_key_of_its_endpoint(self, endpoint: Any) -> None:
        key, kind = RESULT_KEYS[endpoint]
        request = ApiRequest(endpoint, {})
        assert verdict({"status": 0, key: kind()}, request=request).error is None
        assert isinstance(verdict({"status": 0, key: "text"}, request=request).error, MalformedResponseError)


class TestMalformed:
    @pytest.mark.parametrize("place", [[], "place", 1, True])
    def test_is_a_result_of_the_wrong_type_charged_as_stated(self, place: object) -> None:
        found = verdict(success(place=place))
        assert isinstance(found.error, MalformedResponseError)
        assert (found.credits_charged, found.error.possibly_billed, found.body) == (2, False, None)

    @pytest.mark.parametrize("status", ["0", "ok", None, True, False, [], {}, 0.5, 2**31, 10**40, -(2**31)])
    def test_is_a_status_that_is_no_integer(self, status: object) -> None:
        assert isinstance(error(success(status=status)), MalformedResponseError)

    @pytest.mark.parametrize("raw", [b"", b"<html>down for maintenance</html>", b'{"status": 0', b"[]", b'{"x": NaN}'])
    def test_is_what_is_no_json_object_and_it_may_have_been_charged(self, raw: bytes) -> None:
        found = error(raw)
        assert isinstance(found, MalformedResponseError)
        assert found.possibly_billed


class TestBusinessError:
    @pytest.mark.parametrize("status", [1029, 1500, 1502, 1503, 1504])
    def test_that_may_pass(self, status: int) -> None:
        assert isinstance(error(failure(status)), TransientSourceError)

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (1000, TerminalSourceError),
            (1001, UnauthorizedError),
            (1004, NotFoundError),
            (1020, OutOfCreditsError),
            (1, TerminalSourceError),
            (-1, TerminalSourceError),
            (1501, TerminalSourceError),
            (200, TerminalSourceError),
        ],
    )
    def test_that_does_not_pass(self, status: int, kind: type[SourceError]) -> None:
        assert type(error(failure(status))) is kind

    @pytest.mark.parametrize("http_status", [200, 302, 400, 403, 429, 500, 503])
    def test_wins_over_the_http_status(self, http_status: int) -> None:
        assert type(error(failure(1020), http_status)) is OutOfCreditsError
        assert type(error(failure(1502), http_status)) is TransientSourceError

    def test_keeps_status_request_id_and_what_was_charged(self) -> None:
        found = verdict(failure(1004, credits_charged=2))
        assert (found.status, found.request_id, found.credits_charged, found.body) == (1004, "r-2", 2, None)

    @pytest.mark.parametrize("said", [None, 7, ["x"], {"message": "x"}])
    def test_needs_no_usable_text(self, said: Any) -> None:
        assert str(error(failure(1000, said))) == "status 1000, invalid request"

    def test_quotes_the_server_shortly_and_harmlessly(self) -> None:
        text = str(error(failure(1000, f"\x1b[31m bad {KEY}\n\u202e" + "x" * 5000)))
        assert "bad [API key removed]" in text
        assert text.isprintable()
        assert KEY not in text
        assert len(text) < 300


class TestHttpError:
    """Without a business status to explain it."""

    @pytest.mark.parametrize("http_status", [429, 500, 502, 503, 504, 599])
    def test_that_may_pass(self, http_status: int) -> None:
        assert isinstance(error(b"<html>Bad Gateway</html>", http_status), TransientSourceError)

    @pytest.mark.parametrize(
        ("http_status", "billed"), [(429, False), (503, False), (500, True), (502, True), (504, True)]
    )
    def test_may_have_been_charged_unless_it_says_that_nothing_was_done(self, http_status: int, billed: bool) -> None:
        assert error(b"", http_status).possibly_billed is billed

    @pytest.mark.parametrize(
        ("http_status", "kind"),
        [
            (301, TerminalSourceError),
            (308, TerminalSourceError),
            (400, TerminalSourceError),
            (401, UnauthorizedError),
            (402, OutOfCreditsError),
            (403, UnauthorizedError),
            (404, TerminalSourceError),
            (405, TerminalSourceError),
        ],
    )
    def test_that_does_not_pass(self, http_status: int, kind: type[SourceError]) -> None:
        assert type(error(b"Method Not Allowed", http_status)) is kind

    def test_is_not_made_a_success_by_status_0(self) -> None:
        found = verdict(success(), 503)
        assert isinstance(found.error, TransientSourceError)
        assert (found.body, found.credits_charged) == (None, 2)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
ENVELOPES = st.fixed_dictionaries(
    {}, optional={field: VALUES | st.just(value) for field, value in {**success(), "error": "text"}.items()}
)
RAW = ENVELOPES.map(lambda envelope: json.dumps(envelope).encode()) | st.binary()


@st.composite
def mutilated(draw: st.DrawFn) -> bytes:
    """A good answer with a piece of it replaced by anything."""
    good = json.dumps(success()).encode()
    start = draw(st.integers(0, len(good)))
    return good[:start] + draw(st.binary(max_size=8)) + good[start + draw(st.integers(0, 8)) :]


@given(
    RAW | mutilated(),
    st.integers(200, 599),
    st.sampled_from([ApiRequest(endpoint, {}) for endpoint in RESULT_KEYS]),
)
def test_any_answer_at_all_is_a_storable_success_or_an_error(raw: bytes, http_status: int, request: ApiRequest) -> None:
    found = judge(request, http_status, raw, secret=KEY)
    assert (found.body is None) is (found.error is not None)
    assert 0 <= found.credits_charged <= 1_000_000
    assert found.status is None or abs(found.status) < 2**31
    if found.body is not None:
        key, kind = RESULT_KEYS[request.endpoint]
        assert http_status < 300
        assert found.request_id
        assert isinstance(json.loads(found.body.decode()).get(key) or kind(), kind)
