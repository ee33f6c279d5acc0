"""The standard streams of a command: a result that does not reach its end is a failure, a message may get lost."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class ResultLostError(OSError):
    """The result could not be written to stdout; `strerror` says why."""


def open_standard_streams() -> None:
    """Make `sys.stdout` raise `ResultLostError` for what it cannot write, and `sys.stderr` lose it.

    Characters that the encoding of a stream does not have are no reason to fail. A stream that was closed by whoever
    started this process is opened on nothing, or the next file would get its number and what is printed to it. Nothing
    can be written to such a stdout; but where stderr is closed too, nobody listens, and results are thrown away.
    """
    given: list[TextIO | None] = [sys.stdin, sys.stdout, sys.stderr]
    nobody_listens = given[1] is None and given[2] is None
    for number, stream in enumerate(given):
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDWR if nobody_listens else os.O_RDONLY), number)
    if given[0] is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a number, for the whole process
    out, err = given[1:]
    sys.stdout = _text(_Results(1 if out is None else out.fileno(), "w", closefd=False), out)
    sys.stderr = lossy(err)


def lossy(stream: TextIO | None) -> TextIO:
    """A stream of its own to where that one (by default stderr) leads now, which loses what cannot be written there."""
    return _text(_Messages(os.dup(2 if stream is None else stream.fileno()), "w"), stream)


class _Results(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise ResultLostError(error.errno, error.strerror) from error


class _Messages(io.FileIO):
    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        try:
            return super().write(data) or size  # nothing is written where nobody reads and the stream does not wait
        except OSError:
            return size


def _text(raw: io.FileIO, like: TextIO | None) -> TextIO:
    """Below text and buffer, so that it holds for whoever writes and however the interpreter was told to buffer."""
    encoding = "utf-8" if like is None else like.encoding
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=True)
