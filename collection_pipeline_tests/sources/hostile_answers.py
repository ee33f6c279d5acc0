"""A corpus of nasty answers to maps_detail: what a broken, hostile or merely sloppy server may say.

Each has a name, what it must end in (a kind of error, or "success"), and how it is said.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from collection_pipeline_tests.sources.raw_server import Answer, Received, failure, http, saying, success

FEATURE_ID = "0x1a:0x2b"
PLACE: dict[str, Any] = {
    "name": "Jade Leaf",
    "title": "Jade Leaf",
    "feature_id": FEATURE_ID,
    "place_id": "ChIJ",
    "rating": 4.6,
    "review_count": 128,
    "types": ["Tea house"],
    "address": "1 Example St",
    "phone": "020 0000 0000",
    "phone_international": "+44 20 0000 0000",
    "website": "https://jade.example",
    "google_maps_url": "https://maps.example/x",
    "latitude": 51.5,
    "longitude": -0.12,
    "hours": {"Monday": "09:00-17:00"},
    "open_status": {"text": "Open"},
    "attributes": [{"name": "x"}],
    "description": "Tea",
}
GOOD = http(success(place=PLACE))


@dataclass(frozen=True, slots=True)
class Hostile:
    """One nasty answer. `ends_in`: "success" or the `kind` of the error, of which several may be right."""

    name: str
    ends_in: str
    answer: Answer


def corpus() -> list[Hostile]:
    """All of them."""
    makers = (
        _wrong_envelopes,
        _wrong_places,
        _wrong_documents,
        _wrong_texts,
        _wrong_numbers,
        _wrong_errors,
        _wrong_http,
    )
    return [hostile for maker in (*makers, _wrong_connections) for hostile in maker()]


def _said(name: str, ends_in: str, *answers: bytes) -> Hostile:
    return Hostile(name, ends_in, saying(*answers))


def _json(name: str, ends_in: str, body: Any) -> Hostile:
    return _said(name, ends_in, http(json.dumps(body).encode()))


def _raw(name: str, ends_in: str, body: bytes, status: int = 200, **headers: str) -> Hostile:
    return _said(name, ends_in, http(body, status, **headers))


WRONG_VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "empty text": "",
    "number as text": "2",
    "negative": -1,
    "fraction": 0.5,
    "huge": 10**30,
    "past 64 bits": 2**63,
    "empty array": [],
    "empty object": {},
    "array of nulls": [None, [None], {"a": None}],
    "long text": "x" * 100_000,
    "script": "<script>alert(1)</script>",
    "formula": '=HYPERLINK("https://evil.example")',
    "terminal escape": "\x1b]0;title\x07\x1b[31m",
    "right to left": "\u202egpj.exe",
    "surrogate": "\ud800",
    "nul": "a\0b",
}


def _wrong_envelopes() -> Iterator[Hostile]:
    for field in success():
        body = success(place=PLACE)
        del body[field]
        yield _json(f"{field} missing", "malformed" if field == "status" else "success", body)
        for name, value in WRONG_VALUES.items():
            if field == "status":
                ends_in = "terminal" if value == -1 else "malformed"
            elif field == "place":
                # A number that no database takes becomes null, and null is nothing found.
                ends_in = "success" if value in (None, {}, 10**30, 2**63) else "malformed"
            else:
                ends_in = "success"
            yield _json(f"{field} is {name}", ends_in, success(**{"place": PLACE, field: value}))
    for name, value in (("1", 1), ("2", 2), ("200", 200), ("1000.0", 1000.0)):
        yield _json(f"status is {name}", "terminal", success(status=value))


def _wrong_places() -> Iterator[Hostile]:
    for field in PLACE:
        rest = {key: value for key, value in PLACE.items() if key != field}
        yield _json(f"place without {field}", "success", success(place=rest))
        for name, value in WRONG_VALUES.items():
            yield _json(f"place.{field} is {name}", "success", success(place={**rest, field: value}))
    for feature_id in (
        "0X1A:0X2B",
        "ChIJ7csDcMKxe0gR87JEKuY9OZs",
        "11185039208312255219",
        "0x1a",
        "../../etc/passwd",
        "'; --",
    ):
        yield _json(f"place.feature_id {feature_id}", "success", success(place={**PLACE, "feature_id": feature_id}))
    yield _json("place with 10,000 fields", "success", success(place={**PLACE, **{f"f{n}": n for n in range(10_000)}}))
    yield _json(
        "place with odd keys", "success", success(place={**PLACE, "": 1, "a\0": 2, "\ud800": 3, "__proto__": {}})
    )
    yield _json("place of places", "success", success(place={"place": {"place": PLACE}}))
    yield _json("place in an array", "malformed", success(place=[PLACE]))


def _wrong_documents() -> Iterator[Hostile]:
    good = json.dumps(success(place=PLACE)).encode()
    for name, body in {
        "empty": b"",
        "white space": b" \r\n\t ",
        "null": b"null",
        "true": b"true",
        "a number": b"0",
        "a text": b'"ok"',
        "an array": b"[" + good + b"]",
        "cut": good[: len(good) // 2],
        "without its last byte": good[:-1],
        "twice": good + good,
        "with something behind": good + b"<!-- served by cache -->",
        "jsonp": b"callback(" + good + b")",
        "guarded": b")]}'\n" + good,
        "json lines": good + b"\n" + good,
        "with a trailing comma": good[:-1] + b",}",
        "with comments": b"/* hello */" + good,
        "python": str(success(place=PLACE)).encode(),
        "xml": b'<?xml version="1.0"?><status>0</status>',
        "html": b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>",
        "a login page": b"<html><form action=/login><input type=password></form></html>",
        "utf-16": good.decode().encode("utf-16"),
        "utf-32": good.decode().encode("utf-32"),
        "utf-16 without mark": good.decode().encode("utf-16-le"),
        "latin-1": '{"status": 0, "place": {"name": "Café"}}'.encode("latin-1"),
        "gb18030": '{"status": 0, "place": {"name": "茶馆"}}'.encode("gb18030"),
        "utf-7": b"+AHsAIg-status+ACI: 0+AH0-",
        "overlong utf-8": b'{"status": 0, "x": "\xc0\x80"}',
        "raw surrogate": b'{"status": 0, "x": "\xed\xa0\x80"}',
        "raw nul": b'{"status": 0, "x": "\x00"}',
        "raw line break": b'{"status": 0, "x": "\n"}',
        "random": bytes(range(256)) * 40,
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(2000),
        "a broken escape": b'{"status": 0, "x": "\\u12"}',
        "an unknown escape": b'{"status": 0, "x": "\\q"}',
        "an unquoted key": b"{status: 0}",
        "deep arrays": b'{"status": 0, "place": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        "deep objects": b'{"status": 0, "place": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        "not so deep arrays": b'{"status": 0, "place": {"x": ' + b"[" * 70 + b"]" * 70 + b"}}",
        "a never closed array": b'{"status": 0, "x": ' + b"[" * 2_000_000,
        "a million values": b'{"status": 0, "x": [' + b"0," * 1_000_000 + b"0]}",
        "a million objects": b'{"status": 0, "x": [' + b"{}," * 1_000_000 + b"{}]}",
    }.items():
        yield _raw(f"document: {name}", "malformed", body)
    for name, body in {
        "with a byte order mark": b"\xef\xbb\xbf" + good,
        "with white space around": b"\r\n  " + good + b"\n\n",
        "doubled keys": b'{"status": 1020, "status": 0, "place": {"name": "a", "name": "b"}}',
        "a text of 3 MB": json.dumps(success(place={**PLACE, "description": "y" * 3_000_000})).encode(),
        "a text of 3 MB of escapes": json.dumps(success(place={**PLACE, "description": "\0" * 500_000})).encode(),
        "deep enough": b'{"status": 0, "place": {"x": ' + b"[" * 60 + b"]" * 60 + b"}}",
    }.items():
        yield _raw(f"document: {name}", "success", body)


def _wrong_texts() -> Iterator[Hostile]:
    for name, text in {
        "escaped nul": "\\u0000",
        "high surrogate": "\\ud83d",
        "low surrogate": "\\udeeb",
        "surrogates the wrong way round": "\\udeeb\\ud83d",
        "surrogate at the end of a pair": "\\ud83d\\ud83d\\udeeb",
        "escaped nul in escaped backslashes": "\\\\u0000\\\\\\u0000",
        "control characters": "".join(f"\\u{n:04x}" for n in range(1, 32)),
        "noncharacters": "\\ufffe\\uffff",
        "10,000 combining marks": "e" + "\\u0301" * 10_000,
        "zero width": "\\u200b\\u200c\\u200d\\u2060\\ufeff",
        "markdown": "[x](javascript:alert(1)) ![](https://evil.example/x.png)",
        "sql": "'; DROP TABLE runs; --",
        "template": "{{ 7 * 7 }} ${7*7} {% raw %}",
        "sql wildcard": "%_%",
        "csv": "a,b;c\\td\\r\\ne",
    }.items():
        yield _raw(
            f"text: {name}", "success", f'{{"status": 0, "place": {{"name": "{text}", "{text}": "{text}"}}}}'.encode()
        )


def _wrong_numbers() -> Iterator[Hostile]:
    for name, ends_in, number in (
        ("NaN", "malformed", "NaN"),
        ("Infinity", "malformed", "Infinity"),
        ("-Infinity", "malformed", "-Infinity"),
        ("hexadecimal", "malformed", "0x10"),
        ("with leading zero", "malformed", "007"),
        ("with a plus", "malformed", "+1"),
        ("bare fraction", "malformed", ".5"),
        ("of 5,000 digits", "malformed", "9" * 5_000),
        ("of 3,000,000 digits", "malformed", "9" * 3_000_000),
        ("of 4,000 digits", "success", "9" * 4_000),
        ("1e999", "success", "1e999"),
        ("-1e999", "success", "-1e999"),
        ("1e-999", "success", "1e-999"),
        ("1E+400", "success", "1E+400"),
        ("1e9999999999", "success", "1e9999999999"),
        ("a fraction of 1,000,000 digits", "success", "0." + "1" * 1_000_000),
        ("minus zero", "success", "-0"),
        ("2**63", "success", str(2**63)),
        ("-2**63-1", "success", str(-(2**63) - 1)),
        ("2**64 as float", "success", "18446744073709551616.0"),
    ):
        body = f'{{"status": 0, "place": {{"name": "n", "review_count": {number}, "latitude": {number}}}}}'
        yield _raw(f"number: {name}", ends_in, body.encode())
    for name, number in (("1e999", "1e999"), ("NaN", "NaN"), ("huge", "9" * 400), ("tiny", "1e-400x")):
        yield _raw(f"status: {name}", "malformed", f'{{"status": {number}}}'.encode())
    yield _raw("status: 1e-400 is 0", "success", b'{"status": 1e-400}')
    for name, number in (("1e999", "1e999"), ("1e300", "1e300"), ("-0.0", "-0.0"), ("huge", "9" * 400)):
        yield _raw(f"credits_charged: {name}", "success", f'{{"status": 0, "credits_charged": {number}}}'.encode())


def _wrong_errors() -> Iterator[Hostile]:
    for name, value in WRONG_VALUES.items():
        yield _json(f"error text is {name}", "terminal", failure(1000, value))
        yield _json(f"request_id of an error is {name}", "not_found", failure(1004, request_id=value))
        yield _json(f"credits_charged of an error is {name}", "not_found", failure(1004, credits_charged=value))
    yield _json("an error with a place", "terminal", failure(1000, place=PLACE))
    yield _json("an error and nothing else", "terminal", {"status": 1})
    yield _said("an error under HTTP 500", "terminal", http(failure(1000), 500))
    yield _said("a success under HTTP 500", "transient", http(success(), 500))
    yield _said("a success under HTTP 404", "terminal", http(success(), 404))
    for status in (400, 404, 405, 406, 409, 410, 411, 413, 414, 415, 418, 422, 431, 451):
        yield _raw(f"HTTP {status}", "terminal", b"<html>no</html>", status)
    for status in (429, 500, 501, 502, 503, 504, 507, 520, 522, 524, 599):
        yield _raw(f"HTTP {status}", "transient", b"<html>no</html>", status)
    for status in (201, 202, 204, 205, 206, 226):
        yield _raw(f"HTTP {status} without a body", "malformed", b"", status)
    for status in (300, 301, 302, 303, 304, 305, 307, 308):
        yield _raw(f"HTTP {status}", "terminal", b"", status, Location="http://169.254.169.254/latest/meta-data")
    for location in ("file:///etc/passwd", "//evil.example", "javascript:alert(1)", "\x7f", "http://[", "/" * 5000):
        yield _raw(f"redirect to {location[:20]!r}", "terminal", b"", 302, Location=location)


def _wrong_http() -> Iterator[Hostile]:
    good = json.dumps(success(place=PLACE)).encode()
    for name, said in {
        "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "http/0.9": good + b"\r\n\r\n",
        "no status code": b"HTTP/1.1 OK\r\n\r\n",
        "status code of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
        "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + good,
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n" + good,
        "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + good,
        "broken chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n" + good,
        "huge chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n" + good,
        "nul in a header": b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
        "header without colon": b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
        "header of 1 MB": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        "100,000 headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
        "binary": bytes(range(256)) * 10,
    }.items():
        yield _said(f"http: {name}", "malformed transient success", said)
    for name, headers in {
        "content type html": {"Content_Type": "text/html"},
        "content type nonsense": {"Content_Type": ";;;\xff=/"},
        "charset that is none": {"Content_Type": "application/json; charset=rot13"},
        "charset utf-16": {"Content_Type": "application/json; charset=utf-16"},
        "cookies": {"Set_Cookie": "a=b; Domain=evil.example"},
        "retry-after nonsense": {"Retry_After": "yesterday"},
        "strict transport": {"Strict_Transport_Security": "max-age=999999999"},
        "refresh": {"Refresh": "0; url=https://evil.example"},
    }.items():
        yield _said(f"header: {name}", "success", _latin1(good, headers))
    for name, encoding, body in (
        ("gzip that is none", "gzip", good),
        ("gzip cut", "gzip", gzip.compress(good)[:-20]),
        ("gzip with a wrong check sum", "gzip", gzip.compress(good)[:-8] + b"\0" * 8),
        ("deflate that is none", "deflate", good),
        ("gzip of gzip", "gzip", gzip.compress(gzip.compress(good))),
        ("an unknown encoding", "rot13", b"\x93\xa7" + good),
        ("a bomb", "gzip", _bomb()),
        ("a bomb of valid JSON", "gzip", gzip.compress(b'{"status": 0, "x": "' + b"a" * 50_000_000 + b'"}')),
        ("a bomb of white space", "gzip", gzip.compress(b" " * 50_000_000 + good)),
        ("a deflate bomb", "deflate", zlib.compress(b"{" * 50_000_000)),
    ):
        yield _raw(f"encoding: {name}", "malformed transient", body, Content_Encoding=encoding)
    yield _raw(
        "encoding: gzip members",
        "success",
        gzip.compress(good[:50]) + gzip.compress(good[50:]),
        Content_Encoding="gzip",
    )


def _latin1(body: bytes, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode("latin-1") + body


def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()


def _wrong_connections() -> Iterator[Hostile]:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    for name, ends_in, first, again, pause_s in (
        ("silence", "transient", b"", b"", 1.0),
        ("a head and silence", "transient", head, b"", 1.0),
        ("a slow drip", "transient", head, b" ", 0.02),
        ("a slow head", "malformed transient", b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.02),
        ("an endless body", "malformed transient", head, b'{"status": 0, ' * 5_000, 0.0),
        ("an endless head", "malformed transient", b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 5_000, 0.0),
        ("an endless status line", "malformed transient", b"HTTP/1.1 200 ", b"y" * 50_000, 0.0),
        (
            "endless small chunks",
            "malformed transient",
            head[:-2] + b"Transfer-Encoding: chunked\r\n\r\n",
            b"1\r\n{\r\n" * 9_000,
            0.0,
        ),
        ("endless interim answers", "malformed transient", b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000, 0.0),
    ):
        yield Hostile(f"connection: {name}", ends_in, _repeating(first, again, pause_s))
    half = GOOD[:-30]
    for name, said in (("cut at once", b""), ("cut in the head", GOOD[:10]), ("cut in the body", half)):
        yield Hostile(f"connection: {name}", "transient", _then_closing(said, lambda writer: writer.close()))
        yield Hostile(
            f"connection: {name}, with a reset", "transient", _then_closing(said, lambda w: w.transport.abort())
        )
    yield Hostile("connection: a body of 50 MB", "malformed transient", _long(50_000_000))
    yield _said("connection: two answers at once", "success", GOOD + GOOD)
    yield _said("connection: a longer body than said", "success malformed", GOOD + b"garbage")


def _repeating(first: bytes, again: bytes, pause_s: float) -> Answer:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return answer


def _then_closing(said: bytes, close: Callable[[asyncio.StreamWriter], None]) -> Answer:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        close(writer)

    return answer


def _long(size: int) -> Answer:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        for _piece in range(size // 10_000):
            writer.write(b"y" * 10_000)
            await writer.drain()

    return answer
