"""The zones hold: imports point downwards, one module reads the environment, and loading stays light.

The contracts themselves are in pyproject.toml, and `make test` checks them; here each is seen to fail when it should.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "collection_pipeline"
SOURCES = sorted(PACKAGE.rglob("*.py"))

HEAVY = {
    "adbc_driver_manager",
    "aiohttp",
    "apprise",
    "numpy",
    "openpyxl",
    "pandas",
    "pandera",
    "psycopg",
    "pyarrow",
    "xlsxwriter",
}


def lint_imports(folder: Path) -> str:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("module", "statement", "contract"),
    [
        ("engine/planning/planner.py", "import dagster", "What decides is pure"),
        ("engine/planning/graph.py", "import sqlalchemy", "What decides is pure"),
        ("engine/words/summary.py", "import pandas", "What decides is pure"),
        ("engine/run_ids.py", "from collection_pipeline import datasets", "Imports point downwards"),
        ("engine/checks/standard.py", "from collection_pipeline.settings import settings", "Imports point downwards"),
        ("steps/search.py", "import dagster", "Steps are functions of their input"),
        (
            "steps/search.py",
            "from collection_pipeline.engine.store import tables",
            "Steps are functions of their input",
        ),
        ("sources/contract.py", "import pandas", "A source knows HTTP"),
        ("assets.py", "from collection_pipeline.sources import serpbase", "Only the wiring knows which source"),
        ("newcomer.py", "", "Imports point downwards"),
    ],
)
def test_a_wrong_import_breaks_the_contract(copy: Path, module: str, statement: str, contract: str) -> None:
    path = copy / PACKAGE.name / module
    before = path.read_text("utf-8") if path.exists() else None
    path.write_text(f"{before or ''}\n{statement}\n", "utf-8")
    try:
        broken = [line for line in lint_imports(copy).splitlines() if contract in line]
        assert any("BROKEN" in line for line in broken), broken
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before, "utf-8")


def test_only_settings_read_the_environment() -> None:
    readers = {str(path.relative_to(PACKAGE)) for path in SOURCES if any(_environment_reads(path))}
    assert readers == {"settings.py"}


def _environment_reads(path: Path) -> Iterator[ast.AST]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "environb" | "getenv" | "getenvb" | "putenv"):
                yield node
            case ast.ImportFrom(module="os", names=names) if {name.name for name in names} & {"environ", "getenv"}:
                yield node
            case ast.Import(names=names) if any(name.name == "dotenv" for name in names):
                yield node
            case ast.ImportFrom(module="dotenv"):
                yield node
            case ast.Attribute(value=ast.Name(id="dg" | "dagster"), attr="EnvVar"):
                yield node


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"util", "utils", "helper", "helpers", "common", "misc"}
    assert not [path for path in SOURCES if path.stem in drawers]


def test_what_runs_in_production_needs_no_tests() -> None:
    sources = [*SOURCES, *(ROOT / "deploy").rglob("*.py")]
    assert not [path for path in sources if "collection_pipeline_tests" in path.read_text("utf-8")]


def test_loading_the_definitions_adds_no_heavy_library_to_what_dagster_loads() -> None:
    added = _loaded("collection_pipeline.definitions") - _loaded("dagster")
    assert not added & HEAVY


def _loaded(module: str) -> set[str]:
    """The top-level packages in memory after importing the module in a new process."""
    code = f"import json, sys, {module}; print(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))
