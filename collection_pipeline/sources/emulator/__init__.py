"""A server that speaks SerpBase's wire format, filled with the world's airports: no key, no network, repeatable."""

from collection_pipeline.sources.emulator.app import create_app
from collection_pipeline.sources.emulator.faults import FAULTS, Faults, FaultSyntaxError, parse_faults
from collection_pipeline.sources.emulator.options import EmulatorOptions
from collection_pipeline.sources.emulator.server import DEFAULT_PORT, RunningEmulator, embedded, serve

__all__ = [
    "DEFAULT_PORT",
    "FAULTS",
    "EmulatorOptions",
    "FaultSyntaxError",
    "Faults",
    "RunningEmulator",
    "create_app",
    "embedded",
    "parse_faults",
    "serve",
]
