"""Bytes from the network become an object that everybody later can take, or a reason why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collection_pipeline.sources.bodies import MAX_DEPTH, BodyError, read_object

SECRET = "key-0123456789"


def read(raw: bytes) -> Any:
    return read_object(raw, SECRET)[0]


def test_a_good_body_is_kept_byte_for_byte() -> None:
    raw = '{"status": 0, "place": {"name": "Þingeyri 机场 \U0001f6eb", "latitude": 65.87}}'.encode()
    assert read_object(raw, SECRET)[1] == raw


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b'{"a": "x\\u0000y"}', {"a": "x\ufffdy"}),
        (b'{"a": "\\ud800"}', {"a": "\ufffd"}),
        (b'{"a": "\\udc00\\ud800"}', {"a": "\ufffd\ufffd"}),
        (b'{"a\\u0000": 1}', {"a\ufffd": 1}),
        (b'{"a": "\\ud83d\\udeeb"}', {"a": "\U0001f6eb"}),
        (b'{"a": [1e999, -1e999, 1e308]}', {"a": [None, None, 1e308]}),
        (b'{"a": 9223372036854775807, "b": 9223372036854775808}', {"a": 2**63 - 1, "b": None}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'\xef\xbb\xbf {"a": 1}\n', {"a": 1}),
        (b'{"a": "your key is key-0123456789."}', {"a": "your key is [API key removed]."}),
        (b'{"a": "\\u006bey-0123456789"}', {"a": "[API key removed]"}),
        (b'{"key-0123456789": 1}', {"[API key removed]": 1}),
    ],
)
def test_what_no_database_takes_is_replaced(written: bytes, meant: dict[str, Any]) -> None:
    payload, body = read_object(written, SECRET)
    assert payload == meant
    assert json.loads(body) == meant


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"<html><body>502 Bad Gateway</body></html>", "not a JSON object"),
        (b'{"a": ', "not JSON"),
        (b'{"a": 1} trailing', "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": "raw\x00nul"}', "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": "\xff\xfe"}', "not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not a JSON object"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too long"),
        (b'{"a": [' + b"1," * 300_000 + b"1]}", "too many values"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too deeply"),
        (b'{"a":' * MAX_DEPTH + b"{}" + b"}" * MAX_DEPTH, "too deeply"),
    ],
)
def test_what_is_not_a_json_object_is_refused_with_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        read_object(raw, SECRET)


def test_the_deepest_nesting_that_is_read() -> None:
    depth = MAX_DEPTH - 1
    assert read(b'{"a":' * depth + b"{}" + b"}" * depth)


def texts(value: Any) -> Iterator[str]:
    """Every key and text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.booleans())
def test_whatever_is_read_can_be_encoded_read_again_and_is_then_left_alone(value: dict[str, Any], ascii_: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "replace")
    payload, body = read_object(raw, SECRET)
    assert all("\0" not in text and text.encode() is not None for text in texts(payload))
    assert json.loads(body) == payload
    assert read_object(body, SECRET) == (payload, body)


@given(
    st.binary() | st.binary().map(lambda tail: b"{" + tail) | st.text().map(lambda tail: f'{{"a": "{tail}"}}'.encode())
)
def test_any_bytes_at_all_are_an_object_or_a_reason(raw: bytes) -> None:
    try:
        payload, body = read_object(raw, SECRET)
    except BodyError:
        return
    assert json.loads(body.decode()) == payload
