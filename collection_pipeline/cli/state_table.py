"""The state table of a run, for people and for machines, and the exit code that it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from collection_pipeline.cli.group import FAILED
from collection_pipeline.cli.opening import instant
from collection_pipeline.cli.terminal import columns, console, inert, is_terminal, result, result_json, table
from collection_pipeline.engine.words.ages import clock
from collection_pipeline.texts import as_of_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType
    from upath import UPath

    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.planning.planner import Decision
    from collection_pipeline.engine.runs.standing import Standing
    from collection_pipeline.engine.store import ArtifactView, Transition

HEAD = ("job", "status", "version", "as of", "time", "reason")


@dataclass(frozen=True, slots=True)
class StateTable:
    """One look at a run, ready to be printed. `max_credits` is the budget; `undelivered` alerts nobody has seen.

    `reports` is called if there are files to show the place of.
    """

    found: Standing
    max_credits: int | None
    reports: Callable[[], UPath]
    undelivered: Sequence[Transition] = ()

    @property
    def exit_code(self) -> int:
        """1 when something failed or is blocked, else 0."""
        bad = any(each.status == "failed" or each.blocked for each in self._decisions)
        return FAILED if bad else 0

    @property
    def settled(self) -> bool:
        """Whether nothing is in flight and nothing will start by itself, as far as the store knows."""
        return self.found.explanation.plan.settled

    @property
    def has_stopped(self) -> bool:
        """Whether a job was interrupted, or its process ended: `collect run` goes on with it."""
        return any(self.found.explanation.is_stopped(job_id) for job_id in self._plan)

    def to_json(self) -> dict[str, Any]:
        """The one object that `--json` prints."""
        spent = self.found.view.credits
        return {
            "run_id": self.found.view.run_id,
            "as_of": instant(self._as_of),
            "settled": self.settled,
            "credits_charged": spent.charged,
            "credits_reused": spent.reused,
            "jobs": [self._job_json(each) for each in self._decisions],
        }

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The cells of the table, in the order of `HEAD`."""
        explanation = replace(self.found.explanation, brief=True)
        for each in self._decisions:
            marks = [each.status, *(word for word, holds in self._marks(each) if holds)]
            current = each.state.current
            yield (
                each.job_id,
                ", ".join(marks),
                "" if current is None else str(current.version),
                "" if current is None else self._clock(current.as_of),
                self._time(each),
                explanation.account(each.job_id),
            )

    def job_counts(self) -> Counter[str]:
        """The jobs by one word each, so that they add up: what failed or runs by that, else what is remarkable."""
        counts: Counter[str] = Counter()
        for each in self._decisions:
            marks = [word for word, holds in self._marks(each) if holds]
            counts[each.status if each.status in ("failed", "running") or not marks else marks[-1]] += 1
        return counts

    def headline(self) -> str:
        """The run in one line."""
        parts = [f"Run {self.found.view.run_id}: {self.state}", self.age]
        return "; ".join(part for part in parts if part)

    @property
    def state(self) -> str:
        """`settled` or `open`."""
        return "settled" if self.settled else "open"

    @property
    def age(self) -> str:
        """How old the oldest data of the run is; empty if it has none."""
        view = self.found.view
        if self._as_of is None or view.collected_at is None:
            return ""
        is_older = any(each.state.current.degraded for each in self._decisions if each.state.current is not None)
        return as_of_line("en", self._as_of, view.moment, view.collected_at, self._zone, is_older=is_older)

    def footer(self) -> list[str]:
        """Credits, alerts that did not go out, reports, and what to type next."""
        lines = [self._credits()]
        lines += [f"Alert not delivered: {each.text} ({each.problem})" for each in self.undelivered]
        lines += [
            self._files(job.job_id, job.current) for job in self.found.view.jobs if job.current and job.current.files
        ]
        return lines + [f"Type: {command}" for command in self.found.explanation.next_commands()]

    def renderable(self, width: int) -> RenderableType:
        """All of it for a terminal, in lines that fit its `width`."""
        from rich.console import Group
        from rich.text import Text

        head = Text(inert(self.headline()), "bold")
        return Group(head, table(HEAD, self.rows(), width), *(Text(inert(line)) for line in self.footer()))

    def text(self) -> str:
        """All of it for a pipe or a file."""
        return "\n".join([self.headline(), *columns(HEAD, self.rows()), *self.footer()])

    def print(self, *, as_json: bool) -> None:
        """Print it on stdout in the form that fits."""
        if as_json:
            result_json(self.to_json())
        elif is_terminal():
            screen = console()
            screen.print(inert(self.headline()), style="bold")
            screen.print(table(HEAD, self.rows(), screen.width))
            for line in self.footer():
                screen.print(inert(line), soft_wrap=True)  # commands and paths stay in one piece
        else:
            result(self.text())

    @property
    def _plan(self) -> Sequence[str]:
        return tuple(self.found.explanation.plan.decisions)

    @property
    def _decisions(self) -> Sequence[Decision]:
        return tuple(self.found.explanation.plan.decisions.values())

    @property
    def _zone(self) -> Any:
        return self.found.explanation.facts.timezone

    @property
    def _as_of(self) -> datetime | None:
        return min(
            (each.state.current.as_of for each in self._decisions if each.state.current is not None), default=None
        )

    def _job_json(self, decision: Decision) -> dict[str, Any]:
        explanation, job_id, current = self.found.explanation, decision.job_id, decision.state.current
        facts = explanation.facts.of(job_id)
        return {
            "job_id": job_id,
            "status": decision.status,
            "deps": list(explanation.graph[job_id].upstreams),
            "started_at": instant(facts.started_at),
            "finished_at": instant(facts.finished_at),
            "version": None if current is None else current.version,
            "as_of": None if current is None else instant(current.as_of),
            "degraded": current is not None and current.degraded,
            "outdated": decision.outdated,
            "reason": explanation.account(job_id),
            "waits_for": [
                {"job_id": each.job_id, "policy": each.policy, "because": each.because}
                for each in explanation.waits_for(job_id)
            ],
            "next_command": explanation.next_command(job_id),
        }

    def _marks(self, decision: Decision) -> tuple[tuple[str, bool], ...]:
        current = decision.state.current
        return (
            ("blocked", decision.blocked),
            ("degraded", current is not None and current.degraded),
            ("outdated", decision.outdated),
        )

    def _time(self, decision: Decision) -> str:
        facts = self.found.explanation.facts.of(decision.job_id)
        if decision.status == "running" and facts.started_at is not None:
            return f"since {self._clock(facts.started_at)}"
        return "" if facts.finished_at is None or decision.status == "pending" else self._clock(facts.finished_at)

    def _clock(self, moment: datetime) -> str:
        return clock(moment, self.found.view.moment, self._zone)

    def _credits(self) -> str:
        spent = self.found.view.credits
        parts = [f"{spent.charged} spent", f"{spent.reused} saved by reuse"]
        if spent.possibly_billed:
            parts.append(f"{spent.possibly_billed} possibly billed without an answer")
        if self.max_credits is None:
            parts.append("no limit set")
        else:
            left = max(self.max_credits - spent.charged - spent.possibly_billed, 0)
            parts.append(f"{left} left of {self.max_credits}")
        return f"API credits: {', '.join(parts)}"

    def _files(self, job_id: str, artifact: ArtifactView) -> str:
        first, *others = artifact.files
        beside = f" (beside it: {', '.join(file['name'] for file in others)})" if others else ""
        return f"{job_id}: {self.reports() / first['path']}{beside}"


def look(collection: Collection, run_id: str) -> StateTable:
    """Look at a run without Dagster, deciding on the graph that `collection` has.

    Writes nothing, but that a job whose process on this host has ended is failed.
    """
    from collection_pipeline.engine.runs.releasing import release_abandoned
    from collection_pipeline.engine.runs.standing import standing

    release_abandoned(collection, run_id)
    undelivered = collection.store.undelivered(collection.now())
    return StateTable(standing(collection, run_id), collection.max_credits, lambda: collection.reports, undelivered)
