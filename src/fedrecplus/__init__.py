"""Federated recommendation with explicit ratings: train across devices, and measure what still leaks.

>>> import fedrecplus as fr
>>> ratings = fr.load("synthetic:clients=60,items=40,ratings_per_client=10")
>>> training, test = fr.split(ratings, fold=0)
>>> config = fr.change(fr.preset("fedmf"), "server.rounds", 5)
>>> run = fr.train(training, test, config)
>>> len(run.recommender.recommend(ratings.client_ids[0], n=3))
3
"""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.audit import AuditResult, run_audit
    from fedrecplus.config import Config, assign, load_config, preset, with_budget, with_channel
    from fedrecplus.config.change import (
        change,  # these are modules or folders, too: mypy takes them for what they aren't
    )
    from fedrecplus.config.toml import presets
    from fedrecplus.data import FileOptions, Ratings, Scale, Split, folds, from_frame, split, validation_cut
    from fedrecplus.data.describe import describe
    from fedrecplus.data.load import load
    from fedrecplus.data.shards import open_shards
    from fedrecplus.errors import NotFittedError, UserError
    from fedrecplus.experiments import Comparison, compare, cross_validate
    from fedrecplus.training import (
        Callback,
        EarlyStopping,
        Evaluation,
        FedRec,
        MLflow,
        ProgressBar,
        Recommender,
        Run,
        TensorBoard,
        WandB,
        evaluate,
        train,
    )

__version__ = "0.2.0"
__all__ = [
    "AuditResult",
    "Callback",
    "Comparison",
    "Config",
    "EarlyStopping",
    "Evaluation",
    "FedRec",
    "FileOptions",
    "MLflow",
    "NotFittedError",
    "ProgressBar",
    "Ratings",
    "Recommender",
    "Run",
    "Scale",
    "Split",
    "TensorBoard",
    "UserError",
    "WandB",
    "assign",
    "change",
    "compare",
    "cross_validate",
    "describe",
    "evaluate",
    "folds",
    "from_frame",
    "load",
    "load_config",
    "open_shards",
    "preset",
    "presets",
    "run_audit",
    "split",
    "train",
    "validation_cut",
    "with_budget",
    "with_channel",
]

lazily(__name__)
