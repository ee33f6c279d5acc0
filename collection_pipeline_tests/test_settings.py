"""Settings: what is read from where, what is refused, and that secrets stay secret."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import collection_pipeline
from collection_pipeline.settings import Settings, SettingsError, settings, variables

PACKAGE = Path(collection_pipeline.__file__).parent


def load(folder: Path, **environ: str) -> Settings:
    return Settings.load(environ, folder)


def refusal(folder: Path, **environ: str) -> str:
    with pytest.raises(SettingsError) as refused:
        Settings.load(environ, folder)
    assert refused.value.__cause__ is None  # a cause would carry the value into every traceback
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    return str(refused.value)


def test_without_any_variable_everything_has_a_default_below_the_current_folder(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert found.source_kind == "emulator"
    assert found.data == tmp_path / "data"
    assert found.database_url.get_secret_value() == f"sqlite:///{tmp_path}/data/collection.db"
    assert found.reports == f"{tmp_path}/data/reports"
    assert found.queries == PACKAGE / "queries.toml"
    assert found.timezone == ZoneInfo("UTC")
    assert found.language == "en"
    assert (found.max_credits, found.concurrency, found.rate_per_s) == (None, 64, None)
    assert not list(tmp_path.iterdir()), "reading settings creates nothing"


def test_the_data_folder_moves_database_reports_and_dagster_home_along(tmp_path: Path) -> None:
    found = load(tmp_path, COLLECTION_DATA="elsewhere")
    assert found.database_url.get_secret_value() == f"sqlite:///{tmp_path}/elsewhere/collection.db"
    assert found.reports == f"{tmp_path}/elsewhere/reports"
    assert found.dagster_home == tmp_path / "elsewhere" / "dagster"


def test_relative_paths_count_from_the_folder_and_buckets_stay_as_they_are(tmp_path: Path) -> None:
    found = load(tmp_path, COLLECTION_QUERIES="my.toml", COLLECTION_REPORTS="out")
    assert found.queries == tmp_path / "my.toml"
    assert found.reports == f"{tmp_path}/out"
    assert load(tmp_path, COLLECTION_REPORTS="s3://bucket/reports").reports == "s3://bucket/reports"


def test_values_are_typed(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        COLLECTION_TIMEZONE="Asia/Shanghai",
        COLLECTION_LANGUAGE="zh",
        COLLECTION_MAX_CREDITS="500",
        COLLECTION_CONCURRENCY="8",
        COLLECTION_RATE_PER_S="2.5",
        COLLECTION_EMULATOR_FAULTS="anything",
        ALERT_URLS="json://127.0.0.1, json://127.0.0.2",
    )
    assert found.timezone == ZoneInfo("Asia/Shanghai")
    assert found.language == "zh"
    assert (found.max_credits, found.concurrency, found.rate_per_s) == (500, 8, 2.5)
    assert found.emulator_faults == "anything"
    assert found.alert_urls is not None
    assert found.alert_urls.get_secret_value() == "json://127.0.0.1, json://127.0.0.2"


def test_the_environment_wins_over_the_env_file_and_the_env_file_over_the_default(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("COLLECTION_LANGUAGE=zh\nCOLLECTION_CONCURRENCY=5\n# a comment\n", "utf-8")
    found = load(tmp_path, COLLECTION_CONCURRENCY="7")
    assert (found.language, found.concurrency) == ("zh", 7)


def test_a_list_may_be_written_in_several_lines(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('ALERT_URLS="json://127.0.0.1,\n\tjson://127.0.0.2,\r\n"\n', "utf-8")
    assert load(tmp_path).alert_channels == ("json://127.0.0.1", "json://127.0.0.2")


def test_an_empty_variable_is_one_that_is_not_set(tmp_path: Path) -> None:
    found = load(tmp_path, SERPBASE_API_KEY="", COLLECTION_MAX_CREDITS="  ", DAGSTER_HOME="")
    assert found.source_kind == "emulator"
    assert found.max_credits is None


def test_the_process_reads_its_environment_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTION_CONCURRENCY", "3")
    assert settings().concurrency == 3
    monkeypatch.setenv("COLLECTION_CONCURRENCY", "4")
    assert settings().concurrency == 3


class TestSource:
    """Decided once, by which of the two variables is set."""

    def test_a_key_means_the_real_service(self, tmp_path: Path) -> None:
        assert load(tmp_path, SERPBASE_API_KEY="k").source_kind == "serpbase"

    @pytest.mark.parametrize("key", ["ключ", 'a b"c'])
    def test_a_key_that_no_header_can_carry_is_refused(self, tmp_path: Path, key: str) -> None:
        message = refusal(tmp_path, SERPBASE_API_KEY=key)
        assert message.startswith("SERPBASE_API_KEY: the API key of the source holds characters that no HTTP header")
        assert key not in message

    def test_an_address_means_a_gateway(self, tmp_path: Path) -> None:
        found = load(tmp_path, SERPBASE_BASE_URL="https://gateway.example/v1/", SERPBASE_API_KEY="k")
        assert (found.source_kind, found.serpbase_base_url) == ("gateway", "https://gateway.example/v1")

    def test_an_address_without_a_key_is_refused(self, tmp_path: Path) -> None:
        assert refusal(tmp_path, SERPBASE_BASE_URL="http://127.0.0.1:8765") == (
            "SERPBASE_BASE_URL is set and SERPBASE_API_KEY is not. Set it (any word for an emulator)."
        )

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
    def test_plain_http_is_accepted_on_loopback(self, tmp_path: Path, host: str) -> None:
        found = load(tmp_path, SERPBASE_BASE_URL=f"http://{host}:8080", SERPBASE_API_KEY="k")
        assert found.source_kind == "gateway"

    @pytest.mark.parametrize("host", ["gateway.example", "10.0.0.1", "127.0.0.1.example", "localhost.example"])
    def test_plain_http_is_refused_anywhere_else(self, tmp_path: Path, host: str) -> None:
        assert "loopback only" in refusal(tmp_path, SERPBASE_BASE_URL=f"http://{host}")

    @pytest.mark.parametrize(
        "url",
        ["gateway.example", "ftp://gateway.example", "https://", "https://[", "//x", "https://x:port", "https://x y"],
    )
    def test_what_is_no_http_address_is_refused(self, tmp_path: Path, url: str) -> None:
        assert "SERPBASE_BASE_URL" in refusal(tmp_path, SERPBASE_BASE_URL=url)

    @pytest.mark.parametrize("url", ["https://u:hidden@x.example", "https://x.example?key=hidden", "https://x/#hidden"])
    def test_a_key_in_the_address_is_refused(self, tmp_path: Path, url: str) -> None:
        assert "SERPBASE_API_KEY" in refusal(tmp_path, SERPBASE_BASE_URL=url)


class TestDagsterHome:
    """`collect` and `make dev` share one history."""

    def test_the_environment_names_it(self, tmp_path: Path) -> None:
        assert load(tmp_path, DAGSTER_HOME="/srv/dagster").dagster_home == Path("/srv/dagster")

    def test_a_folder_with_a_dagster_yaml_is_one(self, tmp_path: Path) -> None:
        (tmp_path / "dagster.yaml").touch()
        assert load(tmp_path).dagster_home == tmp_path

    def test_elsewhere_it_is_in_the_data_folder(self, tmp_path: Path) -> None:
        assert load(tmp_path).dagster_home == tmp_path / "data" / "dagster"

    def test_a_relative_path_is_refused_as_dagster_would(self, tmp_path: Path) -> None:
        assert "absolute" in refusal(tmp_path, DAGSTER_HOME="here")


class TestRefusals:
    """A wrong value names the variable, what is wrong and what would be right."""

    @pytest.mark.parametrize(
        ("variable", "value", "wrong", "right"),
        [
            ("COLLECTION_TIMEZONE", "Asia/Shangai", "the nearest is Asia/Shanghai", "IANA"),
            ("COLLECTION_TIMEZONE", "../etc/passwd", "no such time zone", "IANA"),
            ("COLLECTION_TIMEZONE", "America", "no such time zone", "IANA"),
            ("COLLECTION_TIMEZONE", "localtime", "no such time zone", "IANA"),
            ("COLLECTION_TIMEZONE", "posixrules", "no such time zone", "IANA"),
            ("COLLECTION_TIMEZONE", "posix/Europe/Berlin", "the nearest is Europe/Berlin", "IANA"),
            ("COLLECTION_TIMEZONE", "Factory", "no such time zone", "IANA"),
            ("COLLECTION_LANGUAGE", "fr", ": not known. ", "en or zh"),
            ("COLLECTION_MAX_CREDITS", "0", "greater than or equal to 1", "from 1 to"),
            ("COLLECTION_MAX_CREDITS", "many", "integer", "from 1 to"),
            ("COLLECTION_CONCURRENCY", "1001", "less than or equal to 1000", "from 1 to 1000"),
            ("COLLECTION_MAX_CREDITS", "9" * 5000, "", "from 1 to 1000000000"),
            ("COLLECTION_MAX_CREDITS", "1000000001", "less than or equal to", "from 1 to 1000000000"),
            ("COLLECTION_RATE_PER_S", "nan", "finite", "from 0.01 to 10000"),
            ("COLLECTION_RATE_PER_S", "inf", "finite", "from 0.01 to 10000"),
            ("COLLECTION_RATE_PER_S", "10001", "less than or equal to 10000", "from 0.01 to 10000"),
            ("COLLECTION_RATE_PER_S", "1e-300", "greater than or equal to 0.01", "from 0.01 to 10000"),
            ("COLLECTION_DATA", "da\0ta", "holds a control character", "the folder of database and reports"),
            ("COLLECTION_DATA", "\udcff", "is not UTF-8", "the folder of database and reports"),
            ("COLLECTION_DATA", "p%41q", "a folder with % or ?", "the folder of database and reports"),
            ("DAGSTER_HOME", "/home?", "a folder with % or ?", "the absolute path"),
            ("COLLECTION_QUERIES", "\x1b[31m.toml", "holds a control character", "the TOML file"),
            ("ALERT_URLS", "json://a\0b", "holds a control character", "Apprise URLs"),
            ("SERPBASE_API_KEY", "a\nb", "holds a control character", "the key"),
            ("COLLECTION_DATABASE_URL", "mysql://host/db", "not the address of a supported database", "sqlite:///"),
            ("COLLECTION_DATABASE_URL", "collection.db", "not the address of a supported database", "postgresql://"),
            ("COLLECTION_DATABASE_URL", "postgresql://", "not the address of a supported database", "postgresql://"),
        ],
    )
    def test_message(self, tmp_path: Path, variable: str, value: str, wrong: str, right: str) -> None:
        message = refusal(tmp_path, **{variable: value})
        assert message.startswith(variable)
        assert len(message) < 600
        assert wrong in message
        assert right in message

    def test_several_wrong_values_are_told_at_once(self, tmp_path: Path) -> None:
        message = refusal(tmp_path, COLLECTION_LANGUAGE="fr", COLLECTION_CONCURRENCY="no")
        assert [line.split("=")[0] for line in message.splitlines()] == [
            "COLLECTION_LANGUAGE",
            "COLLECTION_CONCURRENCY",
        ]

    @pytest.mark.parametrize(
        ("misspelt", "right"),
        [
            ("COLLECTION_TIMEZON", "COLLECTION_TIMEZONE"),
            ("SERPBASE_API_KYE", "SERPBASE_API_KEY"),
            ("ALERTS_URL", "ALERT_URLS"),
            ("ALERT_URL", "ALERT_URLS"),
        ],
    )
    def test_a_misspelt_variable_is_told_with_the_nearest_name(self, tmp_path: Path, misspelt: str, right: str) -> None:
        assert refusal(tmp_path, **{misspelt: "x"}) == f"{misspelt} is no setting. Did you mean {right}?"

    def test_a_misspelt_name_in_the_env_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("COLECTION_LANGUAGE=zh\n", "utf-8")
        assert refusal(tmp_path) == "COLECTION_LANGUAGE is no setting. Did you mean COLLECTION_LANGUAGE?"

    def test_variables_of_the_vendors_clients_and_of_other_programs_are_left_alone(self, tmp_path: Path) -> None:
        load(tmp_path, SERPBASE_TIMEOUT="5", SERPBASE_SOURCE="x", ALERT_LEVEL="x", AWS_PROFILE="x", COLLECTIONS="x")
        (tmp_path / ".env").write_text("DAGSTER_PG_HOST=x\nSERPBASE_TIMEOUT=5\nAWS_PROFILE=x\n", "utf-8")
        load(tmp_path)

    def test_a_name_like_nothing_is_told_with_every_name(self, tmp_path: Path) -> None:
        message = refusal(tmp_path, COLLECTION_QQQQQQQQQQQQQQQQQQQQ="x")
        assert all(name in message for name in variables())

    def test_an_env_file_in_another_encoding_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_bytes(b"COLLECTION_REPORTS=\xff\xfe")
        with pytest.raises(SettingsError, match=r"\.env cannot be read"):
            Settings.load({}, tmp_path)


class TestSecrets:
    """Neither the settings nor a refusal shows a key, a password or an alert address."""

    SECRET = "hunter2-hunter2"

    def test_in_the_settings(self, tmp_path: Path) -> None:
        found = load(
            tmp_path,
            SERPBASE_API_KEY=self.SECRET,
            COLLECTION_DATABASE_URL=f"postgresql://me:{self.SECRET}@127.0.0.1/db",
            ALERT_URLS=f"slack://{self.SECRET}",
        )
        assert self.SECRET not in f"{found!r} {found} {found.model_dump()} {found.model_dump_json()}"

    @pytest.mark.parametrize(
        ("variable", "value"),
        [
            ("COLLECTION_DATABASE_URL", f"mysql://me:{SECRET}@127.0.0.1/db"),
            ("SERPBASE_BASE_URL", f"https://me:{SECRET}@gateway.example"),
            ("SERPBASE_BASE_URL", f"https://gateway.example/?key={SECRET}"),
        ],
    )
    def test_in_a_refusal(self, tmp_path: Path, variable: str, value: str) -> None:
        message = refusal(tmp_path, **{variable: value})
        assert variable in message
        assert self.SECRET not in message
