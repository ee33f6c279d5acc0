"""`collect why`: the decision about one job, edge by edge."""

from __future__ import annotations

from dataclasses import asdict

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.opening import RUN_ID
from collection_pipeline.cli.state_table import look
from collection_pipeline.cli.terminal import result, result_json
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.words.why import edge_accounts


@click.command()
@click.argument("job")
@click.argument("run_id", type=RUN_ID)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def why(job: str, run_id: RunId, as_json: bool) -> None:
    """Explain the decision about JOB in RUN_ID: what each edge says, and because of what."""
    collection = opening.of_run(opening.kept_collection(opening.settings(), run_id), run_id.text)
    job_id = opening.known_job(job, collection.graph.jobs)
    explanation = look(collection, run_id.text).found.explanation
    decision = explanation.plan.decisions[job_id]
    edges = edge_accounts(explanation, job_id)
    if as_json:
        result_json(
            {
                "run_id": run_id.text,
                "job_id": job_id,
                "status": decision.status,
                "readiness": decision.readiness,
                "wanted": decision.wanted,
                "reason": explanation.reason(job_id),
                "edges": [asdict(edge) for edge in edges],
                "next_command": explanation.next_command(job_id),
            }
        )
        return
    result(f"{job_id} of {run_id}: {explanation.reason(job_id)}")
    for edge in edges:
        result(f"  {edge.line()}")
    if not edges:
        result("  It depends on no other job.")
