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
    from fedrecplus.audit import AuditResult as AuditResult, run_audit as run_audit
    from fedrecplus.config import (
        Config as Config,
        assign as assign,
        load_config as load_config,
        preset as preset,
        with_budget as with_budget,
        with_channel as with_channel,
    )
    from fedrecplus.config.change import change as change  # a module there, too, which mypy would take it for
    from fedrecplus.config.toml import presets as presets
    from fedrecplus.data import (
        FileOptions as FileOptions,
        Ratings as Ratings,
        Scale as Scale,
        Split as Split,
        folds as folds,
        from_frame as from_frame,
        open_shards as open_shards,
        split as split,
        validation_cut as validation_cut,
    )
    from fedrecplus.data.describe import describe as describe
    from fedrecplus.data.load import load as load
    from fedrecplus.errors import NotFittedError as NotFittedError, UserError as UserError
    from fedrecplus.experiments import Comparison as Comparison, compare as compare, cross_validate as cross_validate
    from fedrecplus.training import (
        Callback as Callback,
        EarlyStopping as EarlyStopping,
        Evaluation as Evaluation,
        FedRec as FedRec,
        MLflow as MLflow,
        ProgressBar as ProgressBar,
        Recommender as Recommender,
        Run as Run,
        TensorBoard as TensorBoard,
        WandB as WandB,
        evaluate as evaluate,
        train as train,
    )

__version__ = "0.2.0"

lazily(__name__)
