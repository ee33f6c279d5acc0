"""Interrupts, whatever becomes of them: a step makes a failure of one, Dagster of others a note or nothing."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType

from collection_pipeline.engine.runs.looking import looking

TAKEN_WITHIN_S = 0.5
"""A look at what came costs nothing; whether Dagster only waits is asked for once something did."""

ASKED_EVERY_S = 2.0
"""A look at whether somebody asked elsewhere is a query."""

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)

_WAKE = signal.SIGUSR1
"""Dagster puts handlers of its own in place of those for interrupts, and none in place of this one's."""


@contextmanager
def noted() -> Iterator[Callable[[], Sequence[int]]]:
    """Give the one who knows which interrupts came since, the first of them first, whoever handles them.

    Outside the main thread, which alone is interrupted, none come.
    """
    if threading.current_thread() is not threading.main_thread():
        yield tuple
        return
    seen, arriving = socket.socketpair()
    with seen, arriving:
        arriving.setblocking(False)
        before = signal.set_wakeup_fd(arriving.fileno(), warn_on_full_buffer=False)
        came = partial(_came, seen)
        _noting.append(came)
        try:
            yield came
        finally:
            _noting.remove(came)
            signal.set_wakeup_fd(before)


_noting: list[Callable[[], Sequence[int]]] = []
"""Those who know, outermost first: one for this process, but in tests."""


def is_interrupted() -> bool:
    """Whether an interrupt came while they are `noted`. Of one in a step Dagster knows no more than that it failed, and
    goes on with the others."""
    return any(came() for came in _noting)


def _came(seen: socket.socket) -> Sequence[int]:
    try:  # without taking them out: the socket is the memory
        signals = seen.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return ()
    return [each for each in signals if each in INTERRUPTS]


@contextmanager
def taken_while(is_waiting: Callable[[], bool]) -> Iterator[None]:
    """Raise `KeyboardInterrupt` once an interrupt was `noted` and `is_waiting`, in either order: Dagster waits on
    otherwise.

    Outside the main thread none come. All handlers are put back at the end: Dagster leaves one of its own.
    """
    main, over = threading.main_thread(), False
    if threading.current_thread() is not main:
        yield
        return

    def look() -> bool:
        if is_interrupted() and is_waiting():
            signal.pthread_kill(main.ident or 0, _WAKE)
            return True
        return False

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if not over:
            raise KeyboardInterrupt

    with ExitStack() as undone:
        for each in (*INTERRUPTS, _WAKE):
            undone.callback(signal.signal, each, signal.getsignal(each))
        signal.signal(_WAKE, interrupt)
        undone.enter_context(looking(look, every_s=TAKEN_WITHIN_S, name="interrupts"))
        try:
            yield
        finally:  # woken up even here, what is to be undone is: there is one wake-up at the most
            over = True


@contextmanager
def interrupted_when(asked: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Interrupt this process once somebody has `asked` for it elsewhere; give the one who knows whether that came.

    For what no launcher can end.
    """
    came = threading.Event()

    def look() -> bool:
        if asked():
            came.set()
            os.kill(os.getpid(), signal.SIGINT)
        return came.is_set()

    with looking(look, every_s=ASKED_EVERY_S, name="asked to end"):
        yield came.is_set
