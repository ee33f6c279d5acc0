"""The project as people get it: what is installed, from which lock, with which commands, and what a copy contains."""

from __future__ import annotations

import ast
import logging
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import dagster as dg
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from collection_pipeline.settings import variables

pytestmark = pytest.mark.xdist_group("project")  # wheel and sdist are built once, in one process

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
RUNTIME = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
DEVELOPMENT = [Requirement(line) for line in PYPROJECT["project"]["optional-dependencies"]["dev"]]


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    """The output of a command; what it wrote to stderr is shown if it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class TestDependencies:
    """pyproject.toml says what fits together, with reasons; the lock files say exactly which."""

    def test_dagster_and_its_postgres_library_are_bounded_as_a_pair(self) -> None:
        bounds = {item.name: item.specifier for item in RUNTIME if item.name.startswith("dagster")}
        assert bounds.keys() == {"dagster", "dagster-webserver", "dagster-postgres"}
        lower: dict[str, tuple[int, ...]] = {}
        upper: dict[str, tuple[int, ...]] = {}
        for name, specifiers in bounds.items():
            for specifier in specifiers:
                side = {">=": lower, "<": upper}[specifier.operator]
                side[name] = tuple(int(part) for part in specifier.version.split("."))
        major, minor, patch = lower["dagster"]
        assert lower["dagster-webserver"] == lower["dagster"]
        assert lower["dagster-postgres"] == (major - 1, minor + 16, patch)
        assert upper["dagster"] == upper["dagster-webserver"] == (major, minor + 1)
        assert upper["dagster-postgres"] == (major - 1, minor + 17)

    def test_the_locked_pair_matches_too(self) -> None:
        locked = pins("requirements.lock")
        major, minor, patch = (int(part) for part in locked["dagster"].split("."))
        assert locked["dagster-webserver"] == locked["dagster"]
        assert locked["dagster-postgres"] == f"{major - 1}.{minor + 16}.{patch}"

    def test_every_dependency_has_a_lower_bound_and_a_reason(self) -> None:
        text = (ROOT / "pyproject.toml").read_text("utf-8")
        for requirement in RUNTIME:
            assert any(part.operator == ">=" for part in requirement.specifier), requirement
        for name in (item.name for item in [*RUNTIME, *DEVELOPMENT]):
            if name != "dagster":  # whose reason takes several lines
                assert re.search(rf'^ +"{name}\b[^#\n]*,  # \w.+$', text, re.MULTILINE), f"{name} has no reason"

    def test_what_the_package_imports_is_declared_and_what_is_declared_is_used(self) -> None:
        declared = {canonicalize_name(item.name) for item in RUNTIME}
        by_import = packages_distributions()
        imported = {
            canonicalize_name(by_import[module][0])
            for module in _imported_modules(ROOT / "collection_pipeline")
            if module not in sys.stdlib_module_names and module != "collection_pipeline"
        }
        # Used without being imported: the UI, Dagster's storage on PostgreSQL, the time zones behind zoneinfo.
        assert declared == imported | {"dagster-webserver", "dagster-postgres", "tzdata"}

    @pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
    def test_a_lock_holds_exact_versions_with_hashes_and_no_address(self, lock: str) -> None:
        text = (ROOT / lock).read_text("utf-8")
        assert not re.search(r"://|--(?:extra-)?index-url|--find-links|--trusted-host", text)
        entries = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
        assert len(entries) > 80
        for entry in entries:
            assert re.fullmatch(r"[a-z0-9.-]+==[^\s;]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+", entry.strip()), entry

    def test_the_locks_fulfil_pyproject_and_agree_with_each_other(self) -> None:
        runtime, development = pins("requirements.lock"), pins("requirements-dev.lock")
        assert runtime.items() <= development.items()
        build = [Requirement(line) for line in PYPROJECT["build-system"]["requires"]]
        for locked, requirements in ((runtime, [*RUNTIME, *build]), (development, DEVELOPMENT)):
            for item in requirements:
                assert locked[canonicalize_name(item.name)] in item.specifier, f"{item}: run make lock"


def _imported_modules(package: Path) -> set[str]:
    """The top-level names that the package imports, wherever in a module."""
    modules = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Import(names=names):
                    modules |= {name.name.partition(".")[0] for name in names}
                case ast.ImportFrom(module=str(module)):
                    modules.add(module.partition(".")[0])
    return modules


def pins(lock: str) -> dict[str, str]:
    """Name to version, of the entries that apply to this interpreter."""
    lines = re.findall(r"^([a-z0-9].*?)(?: \\)?$", (ROOT / lock).read_text("utf-8"), re.MULTILINE)
    requirements = [Requirement(line) for line in lines]
    return {
        canonicalize_name(item.name): next(iter(item.specifier)).version
        for item in requirements
        if item.marker is None or item.marker.evaluate()
    }


@dataclass(frozen=True)
class Distributions:
    wheel: Path
    sdist: Path

    def in_wheel(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def in_sdist(self) -> dict[str, bytes]:
        """Path below the top folder to content."""
        with tarfile.open(self.sdist) as archive:
            members = [(member, archive.extractfile(member)) for member in archive if member.isfile()]
            return {member.name.partition("/")[2]: file.read() for member, file in members if file is not None}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """An sdist, and the wheel that is built from it: so the sdist has all that a build needs."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return Distributions(next(folder.glob("*.whl")), next(folder.glob("*.tar.gz")))


@pytest.fixture(scope="module")
def installed(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed into it, to be put before everything else on the path."""
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-index")
    run(*pip, "--target", folder, distributions.wheel, cwd=folder)
    return folder


class TestDistributions:
    """Wheel and sdist have everything, and nothing that belongs to one machine."""

    def test_the_wheel_has_every_file_of_the_package_and_nothing_else(self, distributions: Distributions) -> None:
        package = ROOT / "collection_pipeline"
        expected = {
            path.relative_to(ROOT).as_posix()
            for path in package.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert {"collection_pipeline/queries.toml", "collection_pipeline/assets.py"} <= expected
        assert any(path.startswith("collection_pipeline/steps/templates/") for path in expected)
        assert {name for name in distributions.in_wheel() if ".dist-info/" not in name} == expected

    def test_the_sdist_has_what_development_needs(self, distributions: Distributions) -> None:
        contained = distributions.in_sdist().keys()
        assert {"Makefile", "dagster.yaml", "workspace.yaml", "requirements.lock", "requirements-dev.lock"} <= contained
        assert {"LICENSE", "README.md", "docs/OPERATING.md", "collection_pipeline_tests/conftest.py"} <= contained
        assert "collection_pipeline/queries.toml" in contained
        for folder in PYPROJECT["tool"]["mypy"]["files"]:
            assert any(path.startswith(f"{folder}/") for path in contained), folder

    def test_no_file_names_a_place_on_the_machine_it_was_written_on(self, distributions: Distributions) -> None:
        place = re.compile(rb"/(?:home|Users|root)/\w|" + re.escape(f"{ROOT}/".encode()))
        own = Path(__file__).relative_to(ROOT).as_posix()
        assert not [name for name, data in distributions.in_sdist().items() if name != own and place.search(data)]

    def test_the_wheel_alone_gives_a_working_command(self, installed: Path, tmp_path: Path) -> None:
        version = run(installed / "bin" / "collect", "--version", cwd=tmp_path, PYTHONPATH=str(installed))
        assert PYPROJECT["project"]["version"] in version
        assert "run" in run(installed / "bin" / "collect", "--help", cwd=tmp_path, PYTHONPATH=str(installed))

    def test_the_wheel_alone_gives_a_code_location_outside_the_checkout(self, installed: Path, tmp_path: Path) -> None:
        for name in ("workspace.yaml", "dagster.yaml"):
            shutil.copy(ROOT / name, tmp_path)
        dagster = (sys.executable, "-m", "dagster", "definitions", "validate")
        run(*dagster, cwd=tmp_path, PYTHONPATH=str(installed), DAGSTER_HOME=str(tmp_path))


class TestInstance:
    """dagster.yaml: a history that survives, outside the files of the checkout."""

    def test_history_goes_to_the_data_folder_and_is_found_again(self, tmp_path: Path) -> None:
        shutil.copy(ROOT / "dagster.yaml", tmp_path)
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            instance.add_dynamic_partitions("run_id", ["2026-11-28"])
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert instance.get_dynamic_partitions("run_id") == ["2026-11-28"]
        assert {path.name for path in tmp_path.iterdir()} == {"dagster.yaml", "data"}

    def test_what_the_collection_logs_in_a_step_is_among_the_events_of_the_run(self, tmp_path: Path) -> None:
        @dg.op
        def fetch() -> None:
            logging.getLogger("collection_pipeline.calls").warning("nothing comes back")

        @dg.job
        def collect() -> None:
            fetch()

        shutil.copy(ROOT / "dagster.yaml", tmp_path)
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            done = collect.execute_in_process(instance=instance)
            told = {entry.user_message: entry.step_key for entry in instance.all_logs(done.run_id)}
        assert told["nothing comes back"] == "fetch"

    def test_nothing_is_reported_to_anybody(self) -> None:
        assert yaml.safe_load((ROOT / "dagster.yaml").read_text("utf-8"))["telemetry"] == {"enabled": False}

    def test_the_code_location_is_the_same_everywhere(self) -> None:
        workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text("utf-8"))
        loaded = workspace["load_from"][0]["python_module"]
        location = {"module_name": loaded["module_name"], "code_location_name": loaded["location_name"]}
        assert PYPROJECT["tool"]["dagster"] == location
        assert PYPROJECT["tool"]["dg"]["project"]["code_location_target_module"] == loaded["module_name"]


class TestCommands:
    """One command each, the same for people and for the check that runs on every change."""

    def test_make_lists_its_targets(self) -> None:
        makefile = (ROOT / "Makefile").read_text("utf-8")
        phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
        assert phony is not None
        listed = run("make", "--no-print-directory", cwd=ROOT)
        assert {line.split()[1] for line in listed.splitlines()} == set(phony[1].split())

    def test_make_says_which_python_it_needs_when_there_is_none(self, tmp_path: Path) -> None:
        shutil.copy(ROOT / "Makefile", tmp_path)
        for name in ("pyproject.toml", "requirements.lock"):
            (tmp_path / name).touch()
        done = subprocess.run(
            ["make", "run", "PYTHON="], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode != 0
        assert "Python 3.11 or newer is needed" in done.stderr

    def test_the_workflow_runs_the_same_checks(self) -> None:
        workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
        assert {"run": ".ci/run"} in workflow["jobs"]["check"]["steps"]
        assert os.access(ROOT / ".ci" / "run", os.X_OK)

    def test_the_example_of_an_env_file_shows_every_setting(self) -> None:
        text = (ROOT / ".env.example").read_text("utf-8")
        assert re.findall(r"^#?([A-Z_]+)=", text, re.MULTILINE) != []
        assert set(re.findall(r"^#?([A-Z_]+)=", text, re.MULTILINE)) == set(variables())
