"""The queries file: what it may say, and what people are told when it says something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from collection_pipeline.queries import DEFAULT_PATH, MAX_BYTES, MAX_PAGES, QueriesError, Query, load_queries


def write(folder: Path, text: str) -> Path:
    path = folder / "queries.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_default_queries_are_valid_and_speak_chinese_too() -> None:
    queries = load_queries(DEFAULT_PATH)
    assert len(queries) >= 5
    assert "zh-CN" in {query.hl for query in queries}


def test_every_field_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[[query]]\nq = " tea \t house "\n'
        '[[query]]\nq = "茶馆"\nhl = "zh-CN"\ngl = "cn"\npages = 3\nlat = 31\nlng = 121.5\nzoom = 12\n',
    )
    assert load_queries(path) == (
        Query("tea house", "en", "us", 1),
        Query("茶馆", "zh-CN", "cn", 3, 31.0, 121.5, 12),
    )


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "queries.toml"
    path.write_bytes(b'\xef\xbb\xbf[[query]]\nq = "tea"\n')
    assert load_queries(path) == (Query("tea"),)


def test_what_is_no_file_is_refused_without_a_look_into_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: reading would wait for ever
    for path, kind in ((tmp_path / "pipe", "a pipe or"), (Path("/dev/zero"), "or a device"), (tmp_path, "a folder")):
        with pytest.raises(QueriesError, match=f"{path}: this is .*{kind}.*COLLECTION_QUERIES names a file"):
            load_queries(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueriesError, match="it is larger than 1,000,000 bytes"):
        load_queries(write(tmp_path, '[[query]]\nq = "tea"\n' + "#" * MAX_BYTES))


def test_queries_that_differ_in_place_or_language_only_have_names_of_their_own() -> None:
    variants = [
        Query("tea"),
        Query("tea", hl="de"),
        Query("tea", gl="de"),
        Query("tea", lat=1.0000001, lng=2.0),
        Query("tea", lat=1.0000002, lng=2.0),
        Query("tea", lat=1.0000002, lng=2.0, zoom=3),
    ]
    assert len({query.name for query in variants}) == len(variants)


@pytest.mark.parametrize(
    ("entry", "field", "said"),
    [
        ('hl = "en"', "q", "is missing; write what to search for"),
        ('q = "  "', "q", "is blank"),
        ("q = 5", "q", "is a whole number; write text in double quotes"),
        ("q = 2026-11-29", "q", "is a date or time"),
        ('q = "a\\u0000b"', "q", "control character"),
        ('q = "a\\u202eb"', "q", "control character"),
        ('q = "tea"\nhl = "English"', "hl", "is 'English'; write a language code such as en"),
        ('q = "tea"\ngl = "US"', "gl", "is 'US'; write a country code of two lower-case letters"),
        ('q = "tea"\ngl = true', "gl", "is a boolean"),
        ('q = "tea"\npages = 0', "pages", f"is 0; write a whole number from 1 to {MAX_PAGES}"),
        ('q = "tea"\npages = 21', "pages", "is 21"),
        ('q = "tea"\npages = true', "pages", "is a boolean; write a whole number"),
        ('q = "tea"\npages = 1.5', "pages", "is a number; write a whole number"),
        ('q = "tea"\npages = "2"', "pages", "is text"),
        ('q = "tea"\nlat = 91\nlng = 0', "lat", "is 91; write degrees from -90 to 90"),
        ('q = "tea"\nlat = nan\nlng = 0', "lat", "is nan"),
        ('q = "tea"\nlat = 0\nlng = -inf', "lng", "is -inf"),
        ('q = "tea"\nlat = 0\nlng = false', "lng", "is a boolean"),
        ('q = "tea"\nlat = 1', "lng", "is missing; lat and lng come together"),
        ('q = "tea"\nlng = 1', "lat", "is missing; lng and lat come together"),
        ('q = "tea"\nzoom = 3', "zoom", "only works with lat and lng"),
        ('q = "tea"\nlat = 1\nlng = 1\nzoom = 22', "zoom", "is 22; write a whole number from 1 to 21"),
        ('q = "tea"\nlanguage = "en"', "language", "is not known"),
        ('q = "tea"\npage = 2', "page", "Did you mean 'pages'?"),
    ],
)
def test_a_wrong_entry_is_refused_with_file_entry_field_and_what_would_be_right(
    tmp_path: Path, entry: str, field: str, said: str
) -> None:
    path = write(tmp_path, f'[[query]]\nq = "fine"\n[[query]]\n{entry}\n')
    with pytest.raises(QueriesError) as refusal:
        load_queries(path)
    message = str(refusal.value)
    assert message.startswith(f"{path}, entry 2, field {field!r}: it ")
    assert said in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no query in it"),
        ("query = []", "there is no query in it"),
        ('[query]\nq = "tea"', "double brackets"),
        ('query = ["tea"]', "double brackets"),
        ('[[queries]]\nq = "tea"', "'queries' is not known here; a query starts with [[query]]. Did you mean 'query'?"),
        ('[[query]]\nq = "tea"\nq = "tee"\n', "line 3"),
        ("[[query]]\nq = tea", "line 2"),
        (f"query = {'[' * 5000}{']' * 5000}", "nested too deeply"),
        (f'[[query]]\nq = "tea"\npages = {"9" * 5000}', "this is not TOML"),
        (f'[[query]]\nq = "tea"\npages = 0x{"f" * 5000}', "is far too large; write a whole number"),
        ('[[query]]\nq = "tea"\nlat = 0.0\nlng = 0\n[[query]]\nq = "tea"\nlat = -0.0\nlng = 0', "repeats entry 1"),
        ('[[query]]\nq = "tea"\n[[query]]\nq = "tea "\npages = 2', "entry 2: it repeats entry 1"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(QueriesError) as refusal:
        load_queries(path)
    assert str(path) in str(refusal.value)
    assert said in str(refusal.value)


def test_a_file_that_cannot_be_read_is_refused_with_its_name(tmp_path: Path) -> None:
    missing, latin = tmp_path / "missing.toml", tmp_path / "latin.toml"
    latin.write_bytes('q = "café"'.encode("latin-1"))
    for path, said in ((missing, "no such file"), (tmp_path, "this is a folder"), (latin, "byte 8 is not UTF-8")):
        with pytest.raises(QueriesError) as refusal:
            load_queries(path)
        assert str(path) in str(refusal.value)
        assert said in str(refusal.value)


def test_reading_queries_brings_no_heavy_library() -> None:
    heavy = "{'pandas', 'dagster', 'sqlalchemy', 'pydantic', 'aiohttp'}"
    code = f"import sys, collection_pipeline.queries, collection_pipeline.datasets; print({heavy} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "set()"
