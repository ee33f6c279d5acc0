"""README.md and the page on adding a job do what they say: their commands, run in a copy of the checkout, print that.

Each section begins in a copy of its own. In what is shown, `…` stands for any text, and alone on a line for any lines.
"""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import get_args

import pytest
from pydantic import SecretStr

import collection_pipeline
from collection_pipeline.cli import collect
from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.planning.edges import Policy
from collection_pipeline.engine.words.picture import dependencies_page, graph_mermaid
from collection_pipeline.settings import Settings
from collection_pipeline_tests.checkout import ROOT, ZONE, Checkout, answer, copy_checkout, ended

README = (ROOT / "README.md").read_text("utf-8")
ADDING_A_JOB = (ROOT / "docs" / "ADDING_A_JOB.md").read_text("utf-8")
CHINESE = (ROOT / "docs" / "README.zh.md").read_text("utf-8")
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "deploy" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

README_DAY = "2026-11-29"
"""The day on which the output that is shown was printed."""

PLAIN = re.compile(r"(DAGSTER_HOME=\$PWD )?(\.venv/bin/|python3\.11 )")
"""How the commands begin that are for people without make."""

PATCH = "ratings.diff"


@dataclass(frozen=True)
class Shown:
    """A command and the output that is shown beneath it."""

    command: str
    output: str


@dataclass(frozen=True)
class Section:
    """A heading, the commands beneath it, and the patch that one of them applies."""

    heading: str
    commands: tuple[Shown, ...]
    patch: str

    def __str__(self) -> str:
        return self.heading


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of the fenced blocks, of some languages or of all."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [content for language, content in found if language in languages or not languages]


def sections() -> list[Section]:
    """The sections of README.md that show commands, and the page on adding a job."""
    found = []
    for part in (*re.split(r"^## ", README, flags=re.MULTILINE)[1:], ADDING_A_JOB.removeprefix("# ")):
        heading = part.partition("\n")[0]
        commands = [
            Shown(*(each.partition("\n")[::2]))
            for block in blocks(part, "console")
            for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        ]
        if commands:
            found.append(Section(heading, tuple(commands), "".join(blocks(part, "diff"))))
    return found


SECTIONS = sections()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return copy_checkout(tmp_path / "checkout")


@pytest.mark.long
@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_the_commands_do_what_is_shown(section: Section, checkout: Checkout) -> None:
    (checkout.folder / PATCH).write_text(section.patch, "utf-8")
    for shown in section.commands:
        if PLAIN.match(shown.command):
            continue
        if shown.command in ("make dev", "make dev-postgres"):
            assert_dagster_answers(shown.command, checkout)
        elif shown.command.startswith("collect emulator"):
            assert_emulator_answers(shown, checkout)
        elif shown.command == "make test":
            code, output = checkout.run("make --dry-run test")
            assert code == 0
            assert ".venv/bin/pytest" in output
        else:
            code, output = checkout.run(shown.command)
            assert_matches(output, shown)
            something_is_wrong = re.search(r"^Type: collect rerun ", output, re.MULTILINE) is not None
            assert code == something_is_wrong, output
    if section.heading == "Run it":
        assert_queries_find_something(checkout)


def assert_matches(output: str, shown: Shown) -> None:
    if not shown.output:
        return
    pattern = "".join(_pattern(line) for line in normalised(shown.output).splitlines())
    if not re.fullmatch(pattern, normalised(output)):
        pytest.fail(f"$ {shown.command}\n{output}\nWhat is shown:\n{shown.output}", pytrace=False)


def _pattern(line: str) -> str:
    if line == "…":
        return r"(?:.*\n)*?"
    if line.startswith("Installing the locked packages"):  # said by the first `make run` alone
        assert line in (ROOT / "Makefile").read_text("utf-8")
        return ""
    return ".*?".join(map(re.escape, line.split("…"))) + r"\n"


def normalised(text: str) -> str:
    """Text without what differs from day to day: the day, times, counts, and so the width of columns."""
    text = text.replace(f"{datetime.now(ZONE):%Y-%m-%d}", README_DAY)
    text = re.sub(r"\d\d:\d\d(:\d\d)?", "<time>", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<port>", text)
    text = re.sub(r"\b\d+ (rows|credits|spent)\b", r"<number> \1", text)
    return re.sub(r"(?<=\S) {2,}", "  ", re.sub(r" +$", "", text, flags=re.MULTILINE))


def assert_queries_find_something(checkout: Checkout) -> None:
    """What docs/OPERATING.md asks the database, of today's run."""
    (queries,) = blocks((ROOT / "docs" / "OPERATING.md").read_text("utf-8"), "sql")
    with closing(sqlite3.connect(checkout.folder / "data" / "collection.db")) as database:
        (today,) = database.execute("SELECT run_id FROM runs").fetchone()
        for query in queries.replace(README_DAY, today).split(";")[:-1]:
            assert database.execute(query).fetchall(), query


def assert_dagster_answers(command: str, checkout: Checkout) -> None:
    with ended(checkout.start(command)) as serving:
        assert "dagster_version" in json.loads(answer(f"http://127.0.0.1:{checkout.port}/server_info", serving))
    assert (checkout.folder / "data" / "dagster").is_dir()  # the history is where the next start finds it


def assert_emulator_answers(shown: Shown, checkout: Checkout) -> None:
    with ended(checkout.start(shown.command)) as serving:
        assert serving.stdout is not None
        lines = [serving.stdout.readline() for _ in shown.output.splitlines()]
        assert_matches("".join(lines), shown)
        assert answer(f"http://127.0.0.1:{checkout.port}/emulator/faults", serving).strip() in shown.command


def test_the_plain_commands_are_all_that_make_does(checkout: Checkout) -> None:
    code, output = checkout.run("make --dry-run --always-make run dev test PYTHON=python3.11")
    assert code == 0, output
    output = output.replace("--disable-pip-version-check --quiet ", "").replace("exec ", "")
    typed = [shown.command for section in SECTIONS for shown in section.commands if PLAIN.match(shown.command)]
    assert [command.removeprefix("DAGSTER_HOME=$PWD ") for command in typed] == list(
        filter(PLAIN.match, output.splitlines())
    )


def test_something_is_run() -> None:
    assert len(SECTIONS) >= 5
    commands = [shown.command for section in SECTIONS for shown in section.commands]
    assert {"make run", "make dev", "make test"} <= set(commands)


def test_the_picture_is_the_graph() -> None:
    wanted = graph_mermaid(GRAPH)
    assert blocks(README, "mermaid") == [wanted], f"Put this into README.md:\n{wanted}"


def test_the_page_of_dependencies_is_the_graph() -> None:
    page = (ROOT / "docs" / "DEPENDENCIES.md").read_text("utf-8")
    assert page == dependencies_page(GRAPH), "Type: collect graph --format markdown > docs/DEPENDENCIES.md"


def test_the_four_policies_are_in_the_first_table() -> None:
    policies = re.findall(r"^\| \*\*(\w+)\*\* \|", README, re.MULTILINE)[:4]
    assert policies == list(get_args(Policy))


def test_the_table_of_settings_is_what_settings_says() -> None:
    wanted = settings_table()
    assert wanted in README, f"Put this into README.md:\n{wanted}"


def settings_table() -> str:
    """Every variable with its default in a checkout and its meaning."""
    folder = Path.cwd()
    (folder / "dagster.yaml").touch()  # as in a checkout
    found = Settings.load({}, folder)
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        value = getattr(found, name)
        text = str(value.get_secret_value() if isinstance(value, SecretStr) else "" if value is None else value)
        text = "the checkout" if text == str(folder) else text.replace(f"{folder}/", "").replace(f"{ROOT}/", "")
        rows.append(f"| `{field.validation_alias}` | {text} | {field.description} |")
    return "\n".join(rows) + "\n"


def test_every_command_and_option_named_exists() -> None:
    named = re.findall(r"`(collect [a-z][^`]*)`", README)
    assert {command.split()[1] for command in named} == set(collect.commands)
    for command in named:
        _, name, *words = shlex.split(command.replace("[", " ").replace("]", " "))
        options = {option for each in collect.commands[name].params for option in each.opts} | {"--help"}
        assert {word for word in words if word.startswith("-")} <= options, command


def test_every_target_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"`(?:\w+=\S+ )*make ([a-z-]+)`", README)) <= targets


def test_the_zones_are_those_of_the_package_and_every_path_in_them_exists() -> None:
    assert collection_pipeline.__doc__ is not None
    for zone in ("yours", "wiring", "engine"):
        row = re.search(rf"^\| \*\*{zone}\*\* \|.*$", README, re.MULTILINE)
        assert row is not None
        paths = re.findall(r"`([\w/.]+)`", row[0])
        described = collection_pipeline.__doc__.partition(f"**{zone}**")[2].partition("* **")[0]
        assert paths == re.findall(r"`([\w/.]+)`", described)
        assert all((ROOT / "collection_pipeline" / path).exists() for path in paths)


def test_every_exit_code_is_in_the_table() -> None:
    rows = re.findall(r"^\| (\d(?:[\d, ]*)) \|", README, re.MULTILINE)
    assert rows == ["0", "1", "2", "130, 143"]
    assert re.findall(r"(\d) [a-z]", " ".join(str(collect.help).split()).partition("Exit codes:")[2]) == rows[:3]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_pictures_are_light() -> None:
    pictures = sorted((ROOT / "docs" / "images").iterdir())
    assert [each.name for each in pictures if f"docs/images/{each.name}" not in README] == []
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG"), picture
        assert picture.stat().st_size < 300_000, picture


class TestChinese:
    """docs/README.zh.md says the same."""

    def test_the_blocks_are_the_same(self) -> None:
        assert blocks(CHINESE) == blocks(README)

    def test_the_sections_are_as_many_and_as_deep(self) -> None:
        marks = re.compile(r"^(#+) ", re.MULTILINE)
        assert marks.findall(without_blocks(CHINESE)) == marks.findall(without_blocks(README))

    def test_the_tables_name_the_same_things(self) -> None:
        first_cells = re.compile(r"^\| (\*\*\w+\*\*|`[^|]+`|[\d, ]+)(?:（\w+）)? \|", re.MULTILINE)
        assert first_cells.findall(CHINESE) == first_cells.findall(README)

    def test_it_shows_the_same_pictures_and_each_links_to_the_other(self) -> None:
        assert re.findall(r"images/(\w+\.png)", CHINESE) == re.findall(r"images/(\w+\.png)", README)
        assert "(docs/README.zh.md)" in README.partition("\n## ")[0]
        assert "(../README.md)" in CHINESE.partition("\n## ")[0]


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
