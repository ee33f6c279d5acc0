"""The code location that tests start servers with."""

from __future__ import annotations

from collection_pipeline_tests.dagster.script import Script
from collection_pipeline_tests.dagster.small_collection import assets, definitions

_script = Script.of_environment()
_script.refuse_to_load()

defs = definitions(assets(_script), _script)
