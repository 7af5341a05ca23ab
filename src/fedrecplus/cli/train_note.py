"""What `train` says where a trivial predictor does better than what it trained."""

from __future__ import annotations

from fedrecplus.cli.display import tell
from fedrecplus.data import Ratings
from fedrecplus.experiments.trivial import bias_only, global_mean, measured
from fedrecplus.training import Run


def say_what_is_better(run: Run, training: Ratings, test: Ratings) -> None:
    """Say so where means or the most popular items do better: what is no better than these is no recommender."""
    error, ndcg = run.result["rmse"], (run.result["ranking"] or {}).get("ndcg@10")
    relevant_from = run.config.evaluation.relevant_from
    if error is not None:
        means = measured(bias_only(training), training, test, relevant_from).rmse
        if means is not None and means < error:
            tell(f"note: means of people and items alone (bias-only) predict these ratings better: RMSE {means:.4f}")
    if ndcg is not None:
        popular = (measured(global_mean(training), training, test, relevant_from).ranking or {}).get("ndcg@10")
        if popular is not None and popular > ndcg:
            tell(f"note: the most popular items are a better list than these: NDCG@10 {popular:.4f}")
