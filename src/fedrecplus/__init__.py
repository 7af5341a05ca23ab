"""Federated recommendation with explicit ratings: train across devices, and measure what still leaks.

>>> import fedrecplus as fr
>>> ratings = fr.load("synthetic:clients=60,items=40,ratings_per_client=10")
>>> training, test = fr.split(ratings, fold=0)
>>> config = fr.change(fr.preset("fedmf"), "server.rounds", 5)
>>> run = fr.train(training, test, config)
>>> len(run.recommender.recommend(ratings.client_ids[0], n=3))
3
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrecplus.audit.result import AuditResult, run_audit
    from fedrecplus.config import Config, assign, change, load_config, preset, presets, with_budget, with_channel
    from fedrecplus.data import FileOptions, Ratings, Scale, Split, folds, from_frame, split, validation_cut
    from fedrecplus.data.describe import describe
    from fedrecplus.data.load import load
    from fedrecplus.data.shards.read import open_shards
    from fedrecplus.errors import NotFittedError, UserError
    from fedrecplus.experiments.compare import compare, cross_validate
    from fedrecplus.experiments.comparison import Comparison
    from fedrecplus.training import Evaluation, Recommender, Run, evaluate, train
    from fedrecplus.training.callbacks import Callback, EarlyStopping, MLflow, ProgressBar, TensorBoard, WandB
    from fedrecplus.training.estimator import FedRec

__version__ = "0.2.0"

_HOMES = {
    "fedrecplus.audit.result": ("AuditResult", "run_audit"),
    "fedrecplus.config": (
        "Config",
        "assign",
        "change",
        "load_config",
        "preset",
        "presets",
        "with_budget",
        "with_channel",
    ),
    "fedrecplus.data": (
        "FileOptions",
        "Ratings",
        "Scale",
        "Split",
        "describe",
        "folds",
        "from_frame",
        "load",
        "split",
        "validation_cut",
    ),
    "fedrecplus.data.shards.read": ("open_shards",),
    "fedrecplus.errors": ("NotFittedError", "UserError"),
    "fedrecplus.experiments.compare": ("compare", "cross_validate"),
    "fedrecplus.experiments.comparison": ("Comparison",),
    "fedrecplus.training": ("Evaluation", "Recommender", "Run", "evaluate", "train"),
    "fedrecplus.training.callbacks": ("Callback", "EarlyStopping", "MLflow", "ProgressBar", "TensorBoard", "WandB"),
    "fedrecplus.training.estimator": ("FedRec",),
}

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


def __getattr__(name: str) -> Any:
    # a name is imported when it is first used: `fedrecplus --help` must not wait for numba and polars
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'fedrecplus' has no attribute {name!r}")


def __dir__() -> list[str]:
    # what isn't imported yet is there all the same, for completion in notebooks and for help()
    return sorted({*globals(), *__all__})
