"""Which places come first: one order for the news that is asked for and for the report."""

from __future__ import annotations

import pandas as pd


def ordered(details: pd.DataFrame) -> pd.DataFrame:
    """`detail_pages` rows, the top places first, with a fresh index.

    Best rank, then the number of queries that found the place, then reviews; feature_id settles what is left.
    """
    keys = pd.DataFrame(
        {
            "best_rank": details["best_rank"],
            "fewer_queries": -details["queries"].str.count('"rank":'),
            "fewer_reviews": -details["review_count"].fillna(-1),
            "feature_id": details["feature_id"],
        }
    )
    return details.loc[keys.sort_values(keys.columns.tolist(), kind="stable").index].reset_index(drop=True)
