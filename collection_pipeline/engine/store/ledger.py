"""The ledger of paid calls: every exchange is stored as it arrives, and nothing that was paid for is bought again.

An attempt may reuse the answers of its *generation* and its source. Publishing an artifact, usable or not, begins a new
generation, so that a rerun asks anew, while attempts that ended before publishing leave their answers to the next. An
answer of another source is never among them: the emulator's would pass for the real service's.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar

import sqlalchemy as sa

from collection_pipeline.engine.store.attempts import Attempt, check_held, holds, lost_claim
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.runs import lock_run
from collection_pipeline.engine.store.schema import artifacts, jobs, requests
from collection_pipeline.sources.contract import Answer, ApiRequest, Exchange

OK = "ok"

_LOOKUP = 500

_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)

_ANSWER = (
    requests.c.endpoint,
    requests.c.params,
    requests.c.request_id,
    requests.c.started_at,
    requests.c.elapsed_ms,
    requests.c.response,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Credits:
    """API credits of one run: charged by the source, saved by reusing answers, and possibly billed for no answer."""

    charged: int
    reused: int
    possibly_billed: int


class Ledger(StorePart):
    """Storing exchanges, finding the answers among them, and keeping a run inside its budget."""

    def record(self, attempt: Attempt, batch: Sequence[Exchange], *, release: int = 0) -> None:
        """Store exchanges of this attempt, in one transaction; `release` credits of its reservation are used up.

        Also stores what arrives after the job was taken over: it was paid for, and the new holder may reuse it. What is
        reserved is the new holder's by then, and stays as it is. Raises `LostClaimError` when all of it is stored, so
        that nothing more is bought.
        """
        if not batch and not release:
            return
        charged = sum(exchange.credits_charged for exchange in batch)
        doubtful = sum(exchange.request.credits for exchange in batch if _possibly_billed(exchange))
        with self.database.write() as connection:
            if batch:
                connection.execute(requests.insert(), [_row(attempt, exchange) for exchange in batch])
            booking = _the_job(attempt.run_id, attempt.job_id).values(
                credits_charged=jobs.c.credits_charged + charged,
                credits_possibly_billed=jobs.c.credits_possibly_billed + doubtful,
                credits_reserved=sa.case((holds(attempt), _less(release)), else_=jobs.c.credits_reserved),
            )
            is_held = connection.execute(booking.returning(holds(attempt))).scalar()
        if not is_held:
            raise lost_claim(attempt)

    def last_source(self) -> str | None:
        """The source of the newest answer here, of whatever run; None if nothing was answered yet."""
        newest = sa.select(requests.c.source).where(requests.c.kind == OK).order_by(requests.c.id.desc()).limit(1)
        with self.database.read() as connection:
            return connection.execute(newest).scalar()

    def reusable(self, attempt: Attempt) -> set[str]:
        """The fingerprints of the requests that need not be sent: their answers are here."""
        with self.database.read() as connection:
            return set(connection.execute(sa.select(requests.c.fingerprint).where(_answered(attempt))).scalars())

    def count_reuse(self, attempt: Attempt, amount: int) -> None:
        """Note that reusing answers saved `amount` credits."""
        saved = _the_job(attempt.run_id, attempt.job_id).values(credits_reused=jobs.c.credits_reused + amount)
        with self.database.write() as connection:
            connection.execute(saved)

    def answers(self, attempt: Attempt, fingerprints: Iterable[str]) -> Iterator[Answer]:
        """The answers to the requests of these fingerprints that there are, in their order, in flat memory."""
        for chunk in _chunks(fingerprints):
            found = self._found(_answered(attempt), _ANSWER, chunk)
            for row in filter(None, map(found.get, chunk)):
                request = ApiRequest(row.endpoint, json.loads(row.params))
                received = row.started_at + timedelta(milliseconds=row.elapsed_ms)
                yield Answer(request, row.request_id or "", received, bytes(row.response))

    def adopt_answers(self, attempt: Attempt) -> Attempt:
        """The attempt, allowed to reuse also the answers of its source that made the newest version.

        For a rerun that fetches only what is missing. Nothing is copied, and its retries may reuse them too.
        """
        newest = (
            sa.select(artifacts.c.oldest_generation)
            .where(artifacts.c.run_id == attempt.run_id, artifacts.c.job_id == attempt.job_id)
            .order_by(artifacts.c.version.desc())
            .limit(1)
        )
        with self.database.write() as connection:
            oldest = connection.execute(newest).scalar()
            if oldest is None or oldest >= attempt.oldest_generation:
                return attempt
            connection.execute(_the_job(attempt.run_id, attempt.job_id).values(oldest_generation=oldest))
        return dataclasses.replace(attempt, oldest_generation=oldest)

    def credits(self, run_id: str) -> Credits:
        """What the run cost so far; zeros for a run that is not there."""
        columns = (jobs.c.credits_charged, jobs.c.credits_reused, jobs.c.credits_possibly_billed)
        sums = sa.select(*(sa.func.coalesce(sa.func.sum(column), 0) for column in columns))
        with self.database.read() as connection:
            return Credits(*map(int, connection.execute(sums.where(jobs.c.run_id == run_id)).one()))

    def reserve(self, attempt: Attempt, amount: int, limit: int | None) -> bool:
        """Set `amount` credits aside for requests to be sent; False if the budget of the run, `limit`, forbids it.

        Exact across processes: charged, possibly billed and reserved credits of all jobs of the run never exceed the
        limit. A reservation ends with `release`, with `record`'s own `release`, and with the attempt. Raises
        `LostClaimError` if the attempt no longer holds its job: whoever does buys what is missing.
        """
        taken = sa.func.sum(jobs.c.credits_charged + jobs.c.credits_possibly_billed + jobs.c.credits_reserved)
        with self.database.write() as connection:
            lock_run(connection, attempt.run_id)
            check_held(connection, attempt)
            spent = int(connection.execute(sa.select(taken).where(jobs.c.run_id == attempt.run_id)).scalar_one())
            if limit is not None and spent + amount > limit:
                return False
            reserved = _the_job(attempt.run_id, attempt.job_id).values(
                credits_reserved=jobs.c.credits_reserved + amount
            )
            connection.execute(reserved)
            return True

    def release(self, attempt: Attempt, amount: int) -> None:
        """Give `amount` reserved credits back that were not needed, if the attempt still holds its job.

        If it does not, they count as possibly billed since it lost it.
        """
        with self.database.write() as connection:
            own = _the_job(attempt.run_id, attempt.job_id).where(holds(attempt))
            connection.execute(own.values(credits_reserved=_less(amount)))

    def _found(
        self, condition: sa.ColumnElement[bool], columns: Sequence[sa.ColumnElement[Any]], fingerprints: Sequence[str]
    ) -> dict[str, sa.Row[Any]]:
        """By fingerprint, the newest row that meets the condition."""
        wanted = requests.c.fingerprint.in_(fingerprints)
        query = sa.select(requests.c.fingerprint, *columns).where(condition, wanted).order_by(requests.c.id)
        with self.database.read() as connection:
            return {row.fingerprint: row for row in connection.execute(query)}


def _chunks(several: Iterable[T]) -> Iterator[list[T]]:
    stream = iter(several)
    while chunk := list(islice(stream, _LOOKUP)):
        yield chunk


def _answered(attempt: Attempt) -> sa.ColumnElement[bool]:
    return (
        (requests.c.run_id == attempt.run_id)
        & (requests.c.job_id == attempt.job_id)
        & (requests.c.source == attempt.source)
        & (requests.c.kind == OK)
        & requests.c.generation.between(attempt.oldest_generation, attempt.generation)
    )


def _the_job(run_id: str, job_id: str) -> sa.Update:
    return jobs.update().where(jobs.c.run_id == run_id, jobs.c.job_id == job_id)


def _less(amount: int) -> sa.ColumnElement[int]:
    left = jobs.c.credits_reserved - amount
    return sa.case((left > 0, left), else_=0)


def _possibly_billed(exchange: Exchange) -> bool:
    return exchange.error is not None and exchange.error.possibly_billed and not exchange.credits_charged


def _row(attempt: Attempt, exchange: Exchange) -> dict[str, Any]:
    return {
        "run_id": attempt.run_id,
        "job_id": attempt.job_id,
        "attempt": attempt.number,
        "generation": attempt.generation,
        "source": attempt.source,
        "endpoint": exchange.request.endpoint,
        "fingerprint": exchange.request.fingerprint,
        "params": _storable(_ENCODER.encode(dict(exchange.request.params))),
        "try_number": exchange.number,
        "kind": OK if exchange.error is None else exchange.error.kind,
        "request_id": exchange.request_id and _storable(exchange.request_id),
        "status": exchange.status,
        "http_status": exchange.http_status,
        "credits_charged": exchange.credits_charged,
        "possibly_billed": _possibly_billed(exchange),
        "started_at": exchange.started_at,
        "elapsed_ms": exchange.elapsed_ms,
        "error": exchange.error and _storable(str(exchange.error)),
        "response": exchange.body,
    }


def _storable(text: str) -> str:
    """The text without what no database stores: an answer that was paid for is never refused for a stray character."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
