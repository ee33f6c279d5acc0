"""Everything that can be configured from outside, read once: the only module that looks at the environment and `.env`.

pydantic checks the values. Its companion pydantic-settings would fit too, but adds 0.1 s to `collect status`, which
takes 0.3 s in all; python-dotenv adds a tenth of that.
"""

from __future__ import annotations

import difflib
import os
import string
import zoneinfo
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args
from zoneinfo import ZoneInfo

from dotenv import dotenv_values
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from collection_pipeline.engine.visible import is_garbled, shortened
from collection_pipeline.sources.configuration import checked_base_url, checked_key
from collection_pipeline.texts import Language

SourceKind = Literal["emulator", "serpbase", "gateway"]

SERPBASE_URL = "https://api.serpbase.dev"
"""The real service (the vendor's documentation)."""

_OF_THE_VENDOR = ("SERPBASE_TIMEOUT", "SERPBASE_SOURCE")
"""Read by the vendor's own clients, which may be used on the same machine."""

_ZONES_OF_A_HOST = {"localtime", "posixrules", "Factory"}
"""Names under which each host has what it was set to."""

_DATABASES = ("sqlite", "postgresql", "postgresql+psycopg")


class SettingsError(Exception):
    """A setting is wrong. The message names the variable, what is wrong and what would be right; it shows no secret."""

    kind = "settings"
    """Of failure, where a job meets it: its words say enough without type and line."""


def _check_timezone(value: object) -> object:
    if not isinstance(value, str):
        return value
    # Not whatever file of this host ZoneInfo would read: runs keep the name, and other hosts read them.
    known = zoneinfo.available_timezones() - _ZONES_OF_A_HOST
    if value not in known:
        near = difflib.get_close_matches(value, known, n=1, cutoff=0.8)
        raise ValueError(f"there is no such time zone{f', the nearest is {near[0]}' if near else ''}")
    return ZoneInfo(value)


def _check_database(value: object) -> object:
    if isinstance(value, str):
        scheme, found, rest = value.partition("://")
        if not found or scheme not in _DATABASES or not rest.strip("/"):
            raise ValueError("not the address of a supported database")
    return value


def _check_base_url(value: object) -> object:
    return checked_base_url(value) if isinstance(value, str) else value


def _check_key(value: object) -> object:
    return checked_key(value) if isinstance(value, str) else value


def _check_absolute(value: object) -> object:
    if isinstance(value, str) and not Path(value).is_absolute():
        raise ValueError("Dagster accepts absolute paths only")
    return value


def _check_plain(value: object) -> object:
    # Dagster makes database URLs of its folders as they are, and looks elsewhere then.
    if isinstance(value, str) and set(value) & {"%", "?"}:
        raise ValueError("Dagster cannot keep its history in a folder with % or ? in its path")
    return value


class Settings(BaseModel):
    """The settings of one process; made by `Settings.load`. Each field says which variable it is read from."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    serpbase_api_key: Annotated[SecretStr | None, BeforeValidator(_check_key)] = Field(
        None, validation_alias="SERPBASE_API_KEY", description="the key of the SerpBase account"
    )
    serpbase_base_url: Annotated[str | None, BeforeValidator(_check_base_url)] = Field(
        None,
        validation_alias="SERPBASE_BASE_URL",
        description="https://gateway.example, or http://127.0.0.1:8765 for a server on this machine",
    )
    data: Annotated[Path, BeforeValidator(_check_plain)] = Field(
        validation_alias="COLLECTION_DATA", description="the folder of database and reports"
    )
    database_url: Annotated[SecretStr, BeforeValidator(_check_database)] = Field(
        validation_alias="COLLECTION_DATABASE_URL",
        description="sqlite:///path/to/collection.db, or postgresql://user:password@host:5432/database",
    )
    queries: Path = Field(validation_alias="COLLECTION_QUERIES", description="the TOML file that says what to collect")
    reports: str = Field(
        validation_alias="COLLECTION_REPORTS", description="a folder or a bucket, as in s3://bucket/reports"
    )
    timezone: Annotated[ZoneInfo, BeforeValidator(_check_timezone)] = Field(
        ZoneInfo("UTC"),
        validation_alias="COLLECTION_TIMEZONE",
        description="the IANA name of the zone whose days the runs are named after, as in Asia/Shanghai",
    )
    language: Language = Field(
        "en", validation_alias="COLLECTION_LANGUAGE", description="the language of the report: en or zh"
    )
    max_credits: int | None = Field(
        None,
        ge=1,
        le=10**9,
        validation_alias="COLLECTION_MAX_CREDITS",
        description="the most API credits one run may spend, from 1 to 1000000000; without it there is no limit",
    )
    concurrency: int = Field(
        64,
        ge=1,
        le=1000,
        validation_alias="COLLECTION_CONCURRENCY",
        description="requests in flight at once, a whole number from 1 to 1000",
    )
    rate_per_s: float | None = Field(
        None,
        ge=0.01,
        le=10_000,
        allow_inf_nan=False,
        validation_alias="COLLECTION_RATE_PER_S",
        description="requests per second, a number from 0.01 to 10000; without it only the concurrency limits them",
    )
    emulator_faults: str = Field(
        "",
        validation_alias="COLLECTION_EMULATOR_FAULTS",
        description="faults the embedded emulator shows; `collect emulator --help` lists them",
    )
    alert_urls: SecretStr | None = Field(
        None, validation_alias="ALERT_URLS", description="Apprise URLs, separated by commas"
    )
    dagster_home: Annotated[Path, BeforeValidator(_check_absolute), BeforeValidator(_check_plain)] = Field(
        validation_alias="DAGSTER_HOME", description="the absolute path of the folder in which Dagster keeps its runs"
    )

    @property
    def alert_channels(self) -> tuple[str, ...]:
        """The addresses in ALERT_URLS, secrets all."""
        text = "" if self.alert_urls is None else self.alert_urls.get_secret_value()
        return tuple(url.strip() for url in text.split(",") if url.strip())

    @property
    def source_kind(self) -> SourceKind:
        """A gateway if its address is set, else the real service if there is a key, else the embedded emulator."""
        if self.serpbase_base_url is not None:
            return "gateway"
        return "emulator" if self.serpbase_api_key is None else "serpbase"

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, folder: Path | None = None) -> Settings:
        """Read the environment, and below it the `.env` file of the folder; an empty variable counts as not set.

        Both arguments default to those of the process. Relative paths count from the folder. Raises `SettingsError`.
        """
        folder = (Path.cwd() if folder is None else folder).absolute()
        read = _read_dotenv(folder / ".env") | dict(os.environ if environ is None else environ)
        given = {name: value.strip() for name, value in read.items() if value.strip()}
        _refuse_unknown(given)
        _refuse_unreadable(given)
        data = _path(folder, "COLLECTION_DATA", given.get("COLLECTION_DATA", "data"))
        defaults = {
            "COLLECTION_DATABASE_URL": f"sqlite:///{data / 'collection.db'}",
            "COLLECTION_QUERIES": str(Path(__file__).with_name("queries.toml")),
            "COLLECTION_REPORTS": str(data / "reports"),
            # A folder with a dagster.yaml is a Dagster home of its own: the checkout, as `make dev` uses it.
            "DAGSTER_HOME": str(folder if (folder / "dagster.yaml").is_file() else data / "dagster"),
        }
        values = defaults | given | {"COLLECTION_DATA": str(data)}
        values["COLLECTION_QUERIES"] = str(_path(folder, "COLLECTION_QUERIES", values["COLLECTION_QUERIES"]))
        if "://" not in values["COLLECTION_REPORTS"]:
            values["COLLECTION_REPORTS"] = str(_path(folder, "COLLECTION_REPORTS", values["COLLECTION_REPORTS"]))
        try:
            found = cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError(_explain(error, values)) from None  # the cause would carry the values
        if found.serpbase_base_url is not None and found.serpbase_api_key is None:
            raise SettingsError(
                "SERPBASE_BASE_URL is set and SERPBASE_API_KEY is not. Set it (any word for an emulator)."
            )
        return found


@cache
def settings() -> Settings:
    """The settings of this process, read at the first call. Raises `SettingsError`."""
    return Settings.load()


def variables() -> dict[str, str]:
    """Every variable with its meaning, in the order of `Settings`."""
    return {name: field.description or "" for name, field in _fields().items()}


def _fields() -> dict[str, FieldInfo]:
    return {str(field.validation_alias): field for field in Settings.model_fields.values()}


def _read_dotenv(path: Path) -> dict[str, str]:
    try:
        return {name: value for name, value in dotenv_values(path).items() if value is not None}
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}. It holds lines of NAME=value in UTF-8.") from error


def _path(folder: Path, name: str, text: str) -> Path:
    """A path as people write it: from the folder, or from somebody's home. Raises `SettingsError`."""
    try:
        return folder / Path(text).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"{name}={shortened(text)}: this machine has no such user. Expected: a path.") from error


def _refuse_unknown(given: Collection[str]) -> None:
    """A misspelt variable would otherwise change nothing and say nothing. Other programs' variables are not ours."""
    known = variables()
    for name in sorted(set(given).difference(known, _OF_THE_VENDOR)):
        if name.startswith(("COLLECTION_", "SERPBASE_")) or difflib.get_close_matches(name, known, cutoff=0.9):
            near = difflib.get_close_matches(name, known, n=1)
            right = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            raise SettingsError(f"{name} is no setting. {right}")


def _refuse_unreadable(given: Mapping[str, str]) -> None:
    """No setting holds a control character, and bytes that are no UTF-8 can be neither stored nor shown.

    But a long list may be written in several lines.
    """
    for name, field in _fields().items():
        allowed = string.whitespace if name == "ALERT_URLS" else ""
        if is_garbled("".join(set(given.get(name, "")).difference(allowed))):
            raise SettingsError(f"{name}: it holds a control character or is not UTF-8. Expected: {field.description}.")


def _explain(error: ValidationError, values: Mapping[str, str]) -> str:
    """One line a variable: its value unless that is a secret, what is wrong, what would be right."""
    lines = []
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0])
        field = _fields()[name]
        secret = SecretStr in (field.annotation, *get_args(field.annotation))
        secret |= any(mark in values[name] for mark in "@?#")  # where an address carries passwords and keys
        shown = name if secret else f"{name}={shortened(values[name])}"
        # Which values there are is said by the description.
        wrong = "not known" if problem["type"] == "literal_error" else problem["msg"].removeprefix("Value error, ")
        lines.append(f"{shown}: {wrong}. Expected: {field.description}.")
    return "\n".join(lines)
