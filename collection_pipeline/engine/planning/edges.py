"""What an arrow of the graph says: policy, on_rerun and why, and where it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

from collection_pipeline.engine.declarations import DeclarationError, call_site

Policy = Literal["hard", "degrade", "skip", "optional"]
"""What the consumer does when the upstream is unavailable; the table is in `planner.resolve`."""

OnRerun = Literal["follow", "pin"]
"""Whether the consumer runs again when the upstream of the same run has a newer artifact."""


class EdgeError(DeclarationError):
    """An edge gives one of its three answers empty, or one that does not exist."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One upstream of a job. All three answers are mandatory.

    `upstream` is the job_id read from; `policy` says what happens while it is unavailable; `on_rerun` whether this job
    follows its reruns; `why` is one sentence for the people who read the graph.
    Raises `EdgeError` for an answer that is empty or unknown. Python and the type checker refuse a missing one.
    """

    upstream: str
    policy: Policy = field(kw_only=True)
    on_rerun: OnRerun = field(kw_only=True)
    why: str = field(kw_only=True)
    declared_at: str = field(kw_only=True, default_factory=partial(call_site, 1), compare=False)

    def __post_init__(self) -> None:
        for name, answer, known in (
            ("policy", self.policy, get_args(Policy)),
            ("on_rerun", self.on_rerun, get_args(OnRerun)),
        ):
            if answer not in known:
                raise EdgeError(
                    f"{self.declared_at}: the edge from {self.upstream!r} has {name}={answer!r};"
                    f" write one of {', '.join(known)}."
                )
        if not (self.why or "").strip():
            raise EdgeError(f"{self.declared_at}: the edge from {self.upstream!r} has no why; say it in one sentence.")
