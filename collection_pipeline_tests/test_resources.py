"""What the settings are made into: above all, that reports and alerts can get out, known before anything is bought."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collection_pipeline.engine.declarations import DeclarationError
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.words.outcomes import failure_reason
from collection_pipeline.resources import check_outlets, collection, open_source
from collection_pipeline.settings import Settings, SettingsError

MOMENT = datetime(2026, 11, 29, tzinfo=UTC)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:apprise")


def test_a_job_without_a_data_set_is_refused_before_what_consumes_it_fails_to_start(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=r"^datasets\.py: add the data set of prices to DATASETS"):
        collection(Graph.build([Job("search_results"), Job("prices")]), Settings.load({}, tmp_path))


def refusal(folder: Path, **environ: str) -> str:
    with pytest.raises(SettingsError) as refused:
        check_outlets(Settings.load(environ, folder))
    return str(refused.value)


@pytest.mark.parametrize("location", ["reports", "new/folder/reports", "file://{folder}/reports", "memory://reports"])
def test_a_location_that_can_be_made_is_left_alone(tmp_path: Path, location: str) -> None:
    check_outlets(Settings.load({"COLLECTION_REPORTS": location.format(folder=tmp_path)}, tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("location", ["file", "file/below", "file://{folder}/file/below", "dangling", "dangling/below"])
def test_what_is_no_folder_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    said = refusal(tmp_path, COLLECTION_REPORTS=location.format(folder=tmp_path))
    assert said.startswith("COLLECTION_REPORTS=")
    assert "is no folder. Expected: a folder or a bucket, as in s3://bucket/reports." in said


def test_a_folder_that_this_user_may_not_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path or not mode & os.W_OK)  # root may everywhere
    assert f"this user may not write to {tmp_path}. Expected: a folder" in refusal(tmp_path, COLLECTION_REPORTS="a/b")


@pytest.mark.parametrize("urls", ["token", "slack://token", "nosuch://token", "json://127.0.0.1, mailto://to=a,token"])
def test_an_alert_address_that_cannot_be_read_is_refused_and_not_shown(tmp_path: Path, urls: str) -> None:
    said = refusal(tmp_path, ALERT_URLS=urls)
    assert said.startswith("ALERT_URLS: address ")
    assert "is not one that apprise knows. Expected: Apprise URLs, separated by commas" in said
    assert "token" not in said


def test_before_the_first_paid_call_the_folder_is_made_and_written_to(tmp_path: Path) -> None:
    with open_source(Settings.load({}, tmp_path), MOMENT):
        pass
    assert not list((tmp_path / "data" / "reports").iterdir())


def test_a_folder_that_only_writing_to_shows_to_be_none_is_refused_then(tmp_path: Path) -> None:
    """Where root may do everything, and nothing can be made."""
    settings = Settings.load({"COLLECTION_REPORTS": "/proc/nowhere"}, tmp_path)
    with pytest.raises(SettingsError) as refused, open_source(settings, MOMENT):
        pass
    assert str(refused.value).startswith("COLLECTION_REPORTS=/proc/nowhere: ")


def test_a_step_in_dagster_fails_in_the_same_words_before_its_first_paid_call(tmp_path: Path) -> None:
    settings = Settings.load({"ALERT_URLS": "nosuch://token"}, tmp_path)
    with pytest.raises(SettingsError) as refused, open_source(settings, MOMENT):
        pass
    assert failure_reason(refused.value) == refusal(tmp_path, ALERT_URLS="nosuch://token")
