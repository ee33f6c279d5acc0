"""Asking before something is taken away."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from collection_pipeline.cli.group import Refusal
from collection_pipeline.cli.terminal import note


def confirm(lines: Iterable[str], question: str) -> None:
    """Show what would go and ask for it. Raises `Refusal` for a no, and where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise Refusal(
            "Nothing was changed: this asks first, and here is no terminal to ask at. See what would go with --dry-run,"
            " then repeat the command with --yes."
        )
    for line in lines:
        note(line)
    if not click.confirm(question, err=True):
        raise Refusal("Nothing was changed.")
