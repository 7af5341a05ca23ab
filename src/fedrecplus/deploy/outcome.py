"""The end of a deployed run: the files that every run folder has, as far as a server can know them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, to_dict
from fedrecplus.deploy.catalogue import ItemCatalogue
from fedrecplus.deploy.journal import Journal
from fedrecplus.rounds.refit import prediction_table
from fedrecplus.training.model_files import PrivateParts, SharedModel
from fedrecplus.training.run_folder import RunFolder
from fedrecplus.training.tally import Tally


def finish(
    folder: RunFolder,
    config: Config,
    catalogue: ItemCatalogue,
    V: NDArray[Any],
    mean: float,
    tally: Tally,
    journal: Journal,
) -> None:
    """Write model and result. The file of private parts is empty: they are on the devices."""
    shared_model(config, catalogue, V, mean).write(folder.path)
    nobody = np.zeros(0, dtype=np.int64)
    U = np.zeros((0, V.shape[1] + 1))
    PrivateParts(U, np.zeros(1, dtype=np.int64), nobody, nobody, nobody).write(folder.path)
    folder.finish(_result(config, tally, journal.lines(), folder.data()))


def shared_model(config: Config, catalogue: ItemCatalogue, V: NDArray[Any], mean: float) -> SharedModel:
    """A model that anybody may have, and fold themselves into."""
    ids, public = np.array(catalogue.ids, dtype=str), catalogue.public
    table = prediction_table(V, public, catalogue.mean, mean, config)
    return SharedModel(config, catalogue.scale, table, mean, catalogue.mean, public.popularity, ids, catalogue.titles)


def _result(config: Config, tally: Tally, lines: list[dict[str, Any]], data: dict[str, Any]) -> dict[str, Any]:
    """The figures of ``training.results``; errors are null, since test ratings would have to leave their devices."""
    last = lines[-1] if lines else {}
    fit = None if last.get("rmse") is None else {"mae": None, "rmse": last["rmse"], "nmse": None, "ratings": None}
    return {
        "dataset": data.get("dataset"),
        "algorithm": config.algorithm,
        "fold": None,
        "seed": config.seed,
        "mae": None,
        "rmse": None,
        "nmse": None,
        "rounds": config.server.rounds,
        **tally.figures(),
        "train_ratings": None,
        "test_ratings": 0,
        "cold_test_ratings": 0,
        "fit": fit,
        "groups": None,
        "ranking": None,
        "retries": 0,
        "learning_rate": config.client.learning_rate,
        "fingerprint": data.get("fingerprint"),
        "deployment": {
            "uploads": sum(len(line["clients"]) for line in lines),
            "dropouts": sum(len(line["lost"]) + len(line["silent"]) for line in lines),
            **last.get("standing", {}),
        },
        "config": to_dict(config),
        "made": data.get("made"),
    }
