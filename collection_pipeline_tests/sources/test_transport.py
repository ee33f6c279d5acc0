"""Where a key may go, and what a broken exchange means."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
import zlib
from pathlib import Path

import pytest

from collection_pipeline.sources.configuration import SourceConfigurationError
from collection_pipeline.sources.contract import (
    Exchange,
    MalformedResponseError,
    TerminalSourceError,
    TransientSourceError,
)
from collection_pipeline.sources.serpbase import SerpBaseSource
from collection_pipeline.sources.transport import Timeouts
from collection_pipeline_tests.sources.raw_server import (
    KEY,
    ONCE,
    Answer,
    Received,
    collect,
    details,
    http,
    raw_server,
    saying,
    success,
)

PATIENT = Timeouts()
HASTY = Timeouts(connect_s=5, read_s=0.1, total_s=0.3)


def exchange(answer: Answer, timeouts: Timeouts = PATIENT, max_body_bytes: int = 10_000) -> Exchange:
    """One attempt against a server that answers so."""

    async def run() -> Exchange:
        async with raw_server(answer) as server:
            source = SerpBaseSource(
                server.base_url, KEY, timeouts=timeouts, backoff=ONCE, max_body_bytes=max_body_bytes
            )
            [attempt] = await collect(source)
            return attempt

    return asyncio.run(run())


def test_a_word_that_is_too_short_for_a_key_is_left_in_the_texts() -> None:
    async def run() -> Exchange:
        async with raw_server(saying(http(success(place={"name": "Keflavik"})))) as server:
            [attempt] = await collect(SerpBaseSource(server.base_url, "k", backoff=ONCE))
            return attempt

    assert b"Keflavik" in (asyncio.run(run()).body or b"")


def test_a_name_that_is_looked_up_for_too_long_was_never_sent_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look_up)
    source = SerpBaseSource("https://api.example", KEY, timeouts=Timeouts(connect_s=0.1), backoff=ONCE)
    [attempt] = asyncio.run(collect(source))
    assert isinstance(attempt.error, TransientSourceError)
    assert "no connection to the server api.example:443" in str(attempt.error)
    assert not attempt.error.possibly_billed


@pytest.mark.parametrize(
    "url",
    [
        "http://api.serpbase.dev",
        "http://10.0.0.7:8080",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "ftp://127.0.0.1",
        "api.serpbase.dev",
        "https://",
        "",
        "https://user:password@api.serpbase.dev",
        "https://api.serpbase.dev/?key=1",
        "https://api.serpbase.dev/#x",
        "http://[::1",
        "https://host:port",
        "https://two words",
    ],
)
def test_a_key_is_not_sent_just_anywhere(url: str) -> None:
    with pytest.raises(SourceConfigurationError) as refusal:
        SerpBaseSource(url, KEY)
    assert KEY not in str(refusal.value)
    assert "password@" not in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.serpbase.dev",
        "https://gateway.example/serp/",
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://localhost",
    ],
)
def test_https_anywhere_and_plain_http_on_loopback(url: str) -> None:
    SerpBaseSource(url, KEY)  # does not refuse


@pytest.mark.parametrize("key", ["", "  ", "two words", "line\nbreak", "schlüssel", "nul\0"])
def test_a_key_must_fit_into_a_header(key: str) -> None:
    with pytest.raises(SourceConfigurationError) as refusal:
        SerpBaseSource("https://api.serpbase.dev", key)
    assert not key.strip() or key not in str(refusal.value)


@pytest.mark.parametrize(
    "options", [{"concurrency": 0}, {"rate_per_s": 0}, {"rate_per_s": -1}, {"rate_per_s": float("inf")}]
)
def test_limits_must_make_sense(options: dict[str, float]) -> None:
    with pytest.raises(SourceConfigurationError):
        SerpBaseSource("https://api.serpbase.dev", KEY, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_answers_are_read(encoding: str) -> None:
    plain = http(success()).split(b"\r\n\r\n", 1)[1]
    packed = gzip.compress(plain) if encoding == "gzip" else zlib.compress(plain)
    assert exchange(saying(http(packed, Content_Encoding=encoding))).body == plain


def test_a_compression_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b'{"status": 0, "x": "' + b"a" * 50_000_000 + b'"}')
    error = exchange(saying(http(bomb, Content_Encoding="gzip"))).error
    assert isinstance(error, MalformedResponseError)
    assert "longer than" in str(error)


def test_broken_compression_is_malformed() -> None:
    error = exchange(saying(http(b"not gzip at all", Content_Encoding="gzip"))).error
    assert isinstance(error, MalformedResponseError)
    assert "compression" in str(error)


def test_a_body_that_is_too_long_is_not_read_to_its_end() -> None:
    async def endless(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b'{"status": 0, ' * 1000)
            await writer.drain()

    error = exchange(endless).error
    assert isinstance(error, MalformedResponseError)
    assert "longer than 10000 bytes" in str(error)


def test_no_connection_means_nothing_was_charged() -> None:
    async def run() -> Exchange:
        async with raw_server(saying(b"")) as server:
            gone = server.base_url
        [attempt] = await collect(SerpBaseSource(gone, KEY, backoff=ONCE))
        return attempt

    error = asyncio.run(run()).error
    assert isinstance(error, TransientSourceError)
    assert not error.possibly_billed
    assert "nothing was sent" in str(error)


@pytest.mark.parametrize(
    "said",
    [b"", b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"status": 0', b"HTTP/1.1 200"],
    ids=["before", "in the body", "in the head"],
)
def test_a_cut_connection_may_have_been_charged(said: bytes) -> None:
    async def cut(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        writer.close()

    error = exchange(cut).error
    assert isinstance(error, TransientSourceError)
    assert error.possibly_billed


def test_silence_ends_in_a_time_out_that_may_have_been_charged() -> None:
    async def silence(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    error = exchange(silence, HASTY).error
    assert isinstance(error, TransientSourceError)
    assert error.possibly_billed


def test_a_slow_drip_ends_too() -> None:
    async def drip(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    error = exchange(drip, HASTY).error
    assert isinstance(error, TransientSourceError)
    assert error.possibly_billed


@pytest.mark.parametrize(
    "said", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", http(b"x", bad=("y" * 100_000))]
)
def test_what_is_not_http_is_malformed(said: bytes) -> None:
    assert isinstance(exchange(saying(said)).error, MalformedResponseError)


def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one() -> None:
    asked, smuggled = http(success(request_id="asked")), http(success(request_id="smuggled"))

    async def run() -> list[Exchange]:
        async with raw_server(saying(asked + smuggled, asked)) as server:
            return await collect(SerpBaseSource(server.base_url, KEY, concurrency=1, backoff=ONCE), details(3))

    assert "smuggled" not in [attempt.request_id for attempt in asyncio.run(run())]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    async def run() -> tuple[Exchange, int]:
        async with raw_server(saying(http(success()))) as elsewhere:
            async with raw_server(saying(http(b"", status, Location=elsewhere.base_url + "/x"))) as server:
                [attempt] = await collect(SerpBaseSource(server.base_url, KEY))
            return attempt, len(elsewhere.received)

    attempt, followed = asyncio.run(run())
    assert type(attempt.error) is TerminalSourceError
    assert attempt.http_status == status
    assert followed == 0


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes its certificate with openssl")
def test_a_certificate_that_nobody_vouches_for_is_refused_before_the_key_is_sent(tmp_path: Path) -> None:
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *files], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    async def run() -> tuple[Exchange, int]:
        async with raw_server(saying(http(success())), ssl=context) as server:
            [attempt] = await collect(SerpBaseSource(server.base_url, KEY))
            return attempt, len(server.received)

    attempt, received = asyncio.run(run())
    assert type(attempt.error) is TerminalSourceError
    assert "certificate" in str(attempt.error)
    assert received == 0
