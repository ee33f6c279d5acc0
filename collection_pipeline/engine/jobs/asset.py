"""The asset decorator: a plain function, its edges and its checks become a partitioned Dagster asset.

Everything about an edge is written once, in the asset's `edges`, and read back from Dagster's own definitions.
"""

# No `from __future__ import annotations`: Dagster reads the type of `context` from the function itself.
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from collection_pipeline.engine.checks import DEGRADED_INPUTS, OMITTED_INPUTS, VOLUME, Check, Present, Schema, UniqueKey
from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.declarations import DeclarationError
from collection_pipeline.engine.jobs.declaration import Declaration
from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.engine.planning.graph import Deadline, Graph, GraphError, Job, ShelfLife, nearest
from collection_pipeline.engine.runs.launches import RUN_ID

RUNS = dg.DynamicPartitionsDefinition(name=RUN_ID)
"""Every asset is partitioned by run_id; the schedule and `collect` add keys, and so may a person in the UI."""

GROUP = "collection"

COLLECTION_RESOURCE = "collection"
"""The resource through which assets, schedule and sensor reach the store, the source and the settings."""


def collection_asset(
    *,
    dataset: Dataset,
    edges: Sequence[Edge] = (),
    checks: Sequence[Check],
    freshness_policy: dg.FreshnessPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
    kinds: Iterable[str] = (),
    owners: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Make an asset of a function `(job, **inputs) -> Part | iterable of Parts | Product`.

    Its name is the job_id, its docstring the description. `inputs` are named like the upstreams; that of an optional
    edge may be None. A `time_window` freshness policy is the shelf life of its artifacts, a `cron` one its deadline.
    `checks` has a `Volume`, or an `AnyVolume` that says why none is needed. Raises `DeclarationError` for a data set of
    another name, for arguments that do not match the edges, and for checks that are missing or cannot be judged.
    """

    def decorate(body: Callable[..., Any]) -> dg.AssetsDefinition:
        job_id = body.__name__
        place = f"{Path(body.__code__.co_filename).name}:{body.__code__.co_firstlineno}: {job_id}"
        _check_arguments(place, body, edges)
        if dataset.name != job_id:
            raise DeclarationError(f"{place} has the data set {dataset.name}; a data set is called like its job.")
        _check_checks(place, dataset, checks)
        declared = (
            Schema(),
            *((UniqueKey(dataset.key),) if dataset.key else ()),
            *checks,
            *((DEGRADED_INPUTS, OMITTED_INPUTS) if edges else ()),
        )
        declaration = Declaration(
            job_id, body, dataset, tuple(edges), declared, retry_policy.max_retries if retry_policy else 0
        )

        @dg.multi_asset(
            name=job_id,
            specs=[_spec(declaration, freshness_policy, set(kinds), owners)],
            check_specs=_check_specs(declaration),
            # A job with nothing to do ends without a materialization; only a subsettable multi-asset may.
            can_subset=True,
            retry_policy=retry_policy,
            pool=pool,
            required_resource_keys={COLLECTION_RESOURCE},
        )
        def compute(context: dg.AssetExecutionContext) -> Iterator[Any]:
            from collection_pipeline.engine.jobs.execution import execute  # pandas and SQLAlchemy: only when a job runs

            yield from execute(context, declaration, getattr(context.resources, COLLECTION_RESOURCE))

        return compute

    return decorate


def graph_of(assets: Iterable[dg.AssetsDefinition]) -> Graph:
    """The graph that the assets declare, read from their specs. Raises `GraphError` for whatever is no graph."""
    return Graph.build(_job_of(spec) for asset in assets for spec in asset.specs)


def _job_of(spec: dg.AssetSpec) -> Job:
    edges = []
    for dep in spec.deps:
        answers = dep.metadata or {}
        if not answers.keys() >= _EDGE_FIELDS:
            raise GraphError(
                f"{spec.key.to_user_string()} depends on {dep.asset_key.to_user_string()} without policy, on_rerun and"
                " why. Declare the edge in collection_asset(edges=…)."
            )
        edges.append(Edge(dep.asset_key.to_user_string(), **{name: answers[name] for name in _EDGE_FIELDS}))
    shelf_life, deadline = _freshness(spec.freshness_policy)
    return Job(spec.key.to_user_string(), tuple(edges), shelf_life, deadline)


_EDGE_FIELDS = {"policy", "on_rerun", "why", "declared_at"}


def _freshness(policy: Any) -> tuple[ShelfLife | None, Deadline | None]:
    """Shelf life or deadline out of a Dagster freshness policy, by the attributes of its two kinds."""
    if hasattr(policy, "deadline_cron"):
        return None, Deadline(policy.deadline_cron, policy.timezone)
    if hasattr(policy, "fail_window"):
        warn = policy.warn_window
        return ShelfLife(policy.fail_window.to_timedelta(), None if warn is None else warn.to_timedelta()), None
    return None, None


def _check_arguments(place: str, body: Callable[..., Any], edges: Sequence[Edge]) -> None:
    parameters = inspect.signature(body).parameters
    if not parameters:
        raise GraphError(f"{place} takes no argument; the first is the job, followed by one for each edge.")
    _, *names = parameters
    upstreams = [edge.upstream for edge in edges]
    for edge in edges:
        if edge.upstream not in names:
            raise GraphError(
                f"{edge.declared_at}: {body.__name__} has an edge from {edge.upstream} but no argument of that name."
                f" Call it like the job; the arguments are: {', '.join(names) or 'none'}."
            )
    for name in names:
        if name not in upstreams:
            raise GraphError(f"{place} takes {name} but declares no edge from it. {nearest(name, upstreams)}")
    for edge in edges:
        annotation = parameters[edge.upstream].annotation
        if edge.policy == "optional" and annotation is not inspect.Parameter.empty and "None" not in str(annotation):
            raise GraphError(
                f"{edge.declared_at}: {body.__name__} may run without {edge.upstream}, by this edge. Write"
                f" {edge.upstream}: Input | None"
            )


def _check_checks(place: str, dataset: Dataset, checks: Sequence[Check]) -> None:
    names = [check.name for check in checks]
    if VOLUME not in names:
        raise DeclarationError(
            f"{place} does not say how many rows are too few. Add Volume(min_rows=…, min_share=…) to its checks, or"
            " AnyVolume(why=…) if any number is fine."
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DeclarationError(f"{place} has the check {twice} twice. Keep one.")
    columns = [column.name for column in dataset.columns]
    for check in checks:
        if isinstance(check, Present) and check.column not in columns:
            raise DeclarationError(f"{place} checks a column {check.column!r}. {nearest(check.column, columns)}")


def _spec(
    declaration: Declaration,
    freshness_policy: dg.FreshnessPolicy | None,
    kinds: set[str],
    owners: Sequence[str],
) -> dg.AssetSpec:
    return dg.AssetSpec(
        declaration.job_id,
        deps=[
            dg.AssetDep(edge.upstream, metadata={name: getattr(edge, name) for name in sorted(_EDGE_FIELDS)})
            for edge in declaration.edges
        ],
        description=_description(declaration),
        metadata=_definition_metadata(declaration),
        skippable=True,
        group_name=GROUP,
        freshness_policy=freshness_policy,
        owners=owners,
        kinds=kinds,
        partitions_def=RUNS,
    )


def _description(declaration: Declaration) -> str:
    lines = [inspect.cleandoc(declaration.body.__doc__ or "")]
    lines += [f"- `{edge.upstream}`: {edge.policy}, {edge.on_rerun}. {edge.why}" for edge in declaration.edges]
    return "\n\n".join((lines[0], "\n".join(lines[1:]))).strip()


def _definition_metadata(declaration: Declaration) -> dict[str, Any]:
    columns = [
        dg.TableColumn(
            column.name, column.kind, column.description, dg.TableColumnConstraints(nullable=column.nullable)
        )
        for column in declaration.dataset.columns
    ]
    return {"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": declaration.dataset.name}


def _check_specs(declaration: Declaration) -> list[dg.AssetCheckSpec]:
    with warnings.catch_warnings():
        # Checks per partition are a preview of Dagster's, used for display only: the engine's verdict is what counts.
        warnings.filterwarnings("ignore", "Specifying a partitions_def on an AssetCheckSpec", dg.PreviewWarning)
        return [
            dg.AssetCheckSpec(
                check.name,
                asset=declaration.job_id,
                description=check.description,
                blocking=check.blocking,
                partitions_def=RUNS,
            )
            for check in declaration.checks
        ]
