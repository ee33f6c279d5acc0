"""Collection jobs in the order of their data: search, the detail pages of what it found, the report.

Three zones:

* **yours** (edit to adapt): `assets.py`, `queries.toml`, `datasets.py`, `texts.py`, `steps/`, `sources/`
* **wiring** (Dagster glue, touch when the graph changes): `definitions.py`, `automation.py`, `resources.py`,
  `settings.py`, `cli/`
* **engine** (leave alone): `engine/`
"""
