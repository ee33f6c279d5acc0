"""The tables, the same on SQLite and PostgreSQL.

Instants are `timestamptz` on PostgreSQL and fixed-width text in UTC on SQLite (2026-11-29 06:00:00.000000Z), which
sorts as it reads and compares with what SQLite's own date functions give.
Names and order of the columns are what people see who `SELECT * FROM jobs`, so the telling ones come first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine


class Instant(TypeDecorator[datetime]):
    """An aware datetime, stored and returned in UTC."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; instants are aware.")
        value = value.astimezone(UTC)
        if dialect.name == "postgresql":
            return value
        # strftime does not pad years below 1000; isoformat does.
        return value.isoformat(" ", "microseconds").replace("+00:00", "Z")

    def process_result_value(self, value: Any, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return instant.astimezone(UTC)


metadata = sa.MetaData()

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_Deps = sa.JSON().with_variant(postgresql.ARRAY(sa.Text()), "postgresql")
_Json = sa.JSON(none_as_null=True)


def _counter(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


store_schema = sa.Table("store_schema", metadata, sa.Column("version", sa.Integer, primary_key=True))

graphs = sa.Table(
    "graphs",
    metadata,
    sa.Column("graph_hash", sa.Text, primary_key=True),
    sa.Column("graph", sa.Text, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("moment", Instant, nullable=False),
    sa.Column("suffix", sa.Integer, nullable=False),
    sa.Column("opened_at", Instant, nullable=False),
    sa.Column("settled_at", Instant),
    sa.Column("graph_hash", sa.Text, sa.ForeignKey("graphs.graph_hash"), nullable=False),
    # Counts every change of the run's state, so that a plan made on an older state is recognised as such.
    _counter("revision"),
    # The IANA name of the zone it was opened in; NULL for runs from before schema 2 (see `runs.zone_of`).
    sa.Column("timezone", sa.Text),
    sa.Index("ix_runs_order", "moment", "suffix"),
)
sa.Index(
    "ix_runs_open",
    runs.c.moment,
    runs.c.suffix,
    sqlite_where=runs.c.settled_at.is_(None),
    postgresql_where=runs.c.settled_at.is_(None),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id"), primary_key=True),
    sa.Column("job_id", sa.Text, primary_key=True),
    sa.Column("deps", _Deps, nullable=False),
    sa.Column("status", sa.Text, nullable=False, server_default="pending"),
    sa.Column("started_at", Instant),
    sa.Column("finished_at", Instant),
    sa.Column("reason", sa.Text),
    sa.Column("error_kind", sa.Text),
    # Running, or how the last attempt ended, and what it consumed: the planner decides on these, `status` shows it.
    sa.Column("outcome", sa.Text, nullable=False, server_default="pending"),
    sa.Column("attempted", _Json),
    _counter("attempt"),
    sa.Column("dagster_run_id", sa.Text),
    sa.Column("host", sa.Text),
    sa.Column("pid", sa.BigInteger),
    sa.Column("process_started_at", sa.Double),
    _counter("start_failures"),
    # Ledger: every artifact ends a generation of answers; the attempt may reuse those from `oldest_generation` on.
    _counter("generation"),
    _counter("oldest_generation"),
    _counter("credits_charged"),
    _counter("credits_reused"),
    _counter("credits_possibly_billed"),
    _counter("credits_reserved"),
    # The graph no longer has this job; the row stays because its artifacts do.
    sa.Column("removed", sa.Boolean, nullable=False, server_default=sa.false()),
)
sa.Index(
    "ix_jobs_running",
    jobs.c.run_id,
    jobs.c.job_id,
    sqlite_where=jobs.c.outcome == "running",
    postgresql_where=jobs.c.outcome == "running",
)

# SQLite takes a partial index only for the very words of the query, and SQLAlchemy says "is_current = 1" there.
_IS_CURRENT: dict[str, Any] = {"sqlite_where": sa.text("is_current = 1"), "postgresql_where": sa.text("is_current")}

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("artifact_id", _Id, primary_key=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id"), nullable=False),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("usable", sa.Boolean, nullable=False),
    # The newest usable version of its job and run that was not retracted.
    sa.Column("is_current", sa.Boolean, nullable=False),
    sa.Column("as_of", Instant, nullable=False),
    sa.Column("degraded", sa.Boolean, nullable=False),
    sa.Column("row_count", sa.BigInteger, nullable=False),
    sa.Column("content_hash", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("source", sa.Text),
    sa.Column("published_at", Instant, nullable=False),
    sa.Column("retracted_at", Instant),
    sa.Column("retract_reason", sa.Text),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("dagster_run_id", sa.Text, nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("oldest_generation", sa.BigInteger, nullable=False),
    sa.Column("credits_charged", sa.BigInteger, nullable=False),
    sa.Column("credits_reused", sa.BigInteger, nullable=False),
    sa.Column("checks", _Json, nullable=False),
    sa.Column("metadata", _Json, nullable=False),
    sa.Column("files", _Json, nullable=False),
    # The run's place in the order of runs, repeated here so that a fallback is found by one index.
    sa.Column("moment", Instant, nullable=False),
    sa.Column("suffix", sa.Integer, nullable=False),
    sa.UniqueConstraint("run_id", "job_id", "version"),
)
sa.Index(
    "ix_artifacts_current",
    artifacts.c.run_id,
    artifacts.c.job_id,
    unique=True,
    **_IS_CURRENT,
)
sa.Index(
    "ix_artifacts_fallback",
    artifacts.c.job_id,
    artifacts.c.as_of,
    artifacts.c.moment,
    artifacts.c.suffix,
    **_IS_CURRENT,
)
sa.Index(
    "ix_artifacts_order",
    artifacts.c.job_id,
    artifacts.c.moment,
    artifacts.c.suffix,
    **_IS_CURRENT,
)

artifact_inputs = sa.Table(
    "artifact_inputs",
    metadata,
    sa.Column("artifact_id", _Id, sa.ForeignKey("artifacts.artifact_id"), primary_key=True),
    sa.Column("upstream", sa.Text, primary_key=True),
    # NULL: the artifact was made without this input.
    sa.Column("input_artifact_id", _Id, sa.ForeignKey("artifacts.artifact_id"), index=True),
    sa.Column("policy", sa.Text, nullable=False),
    sa.Column("on_rerun", sa.Text, nullable=False),
)

unmet_fallbacks = sa.Table(
    "unmet_fallbacks",
    metadata,
    # A settled run lacks an artifact that a fallback for `upstream`, with this or a newer as_of, might bring about.
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id"), primary_key=True),
    sa.Column("upstream", sa.Text, primary_key=True),
    sa.Column("oldest_as_of", Instant, nullable=False),
    sa.Column("moment", Instant, nullable=False),
    sa.Column("suffix", sa.Integer, nullable=False),
    sa.Index("ix_unmet_fallbacks_upstream", "upstream", "moment"),
)

requests = sa.Table(
    "requests",
    metadata,
    sa.Column("id", _Id, primary_key=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("endpoint", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("params", sa.Text, nullable=False),
    sa.Column("try_number", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("request_id", sa.Text, index=True),
    sa.Column("status", sa.BigInteger),
    sa.Column("http_status", sa.Integer),
    sa.Column("credits_charged", sa.BigInteger, nullable=False),
    sa.Column("possibly_billed", sa.Boolean, nullable=False),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("elapsed_ms", sa.BigInteger, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("response", sa.LargeBinary),
    # What is asked for by equality first, then the generations, which are a range.
    sa.Index("ix_requests_lookup", "run_id", "job_id", "source", "kind", "fingerprint", "generation"),
)

datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("dataset", sa.Text, primary_key=True),
    # What the physical table has, by column name: the kinds, also of columns no longer described.
    sa.Column("kinds", _Json, nullable=False),
    # What the view shows, in order.
    sa.Column("shown", _Json, nullable=False),
)

removals = sa.Table(
    "removals",
    metadata,
    # Runs already pruned here, whose files and Dagster partitions may still be there.
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("files", _Json, nullable=False),
    sa.Column("pruned_at", Instant, nullable=False),
)

alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("episode_id", _Id, primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("opened_run", sa.Text, nullable=False),
    sa.Column("last_run", sa.Text, nullable=False),
    sa.Column("last_moment", Instant, nullable=False),
    sa.Column("last_suffix", sa.Integer, nullable=False),
    sa.Column("run_count", sa.Integer, nullable=False),
    sa.Column("opened_at", Instant, nullable=False),
    sa.Column("healed_at", Instant),
    sa.Column("healed_run", sa.Text),
    # Of the last announcement, opening or healing.
    sa.Column("delivered", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("delivery_error", sa.Text),
    sa.Column("tried_at", Instant, nullable=False),
)
sa.Index(
    "ix_alerts_open",
    alerts.c.key,
    unique=True,
    sqlite_where=alerts.c.healed_at.is_(None),
    postgresql_where=alerts.c.healed_at.is_(None),
)
sa.Index(
    "ix_alerts_undelivered",
    alerts.c.tried_at,
    sqlite_where=~alerts.c.delivered,
    postgresql_where=~alerts.c.delivered,
)
