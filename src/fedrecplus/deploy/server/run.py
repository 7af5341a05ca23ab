"""A deployed run's folder: its beginning, going on with a finished model, and its end as far as a server knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import msgspec

from fedrecplus.config import Config, load_config, to_tables
from fedrecplus.deploy.server.catalogue import ITEMS, read_catalogue, write_catalogue
from fedrecplus.deploy.server.deployment import Deployment
from fedrecplus.deploy.server.journal import JOURNAL, LOG, Journal
from fedrecplus.deploy.wire import ItemCatalogue, check_deployable, fixed_settings
from fedrecplus.engines import PrivateState, SimulationState
from fedrecplus.errors import UserError
from fedrecplus.provenance import Stopwatch
from fedrecplus.rounds import ServerState
from fedrecplus.training.checkpoint import Checkpoint
from fedrecplus.training.divergence import step_size
from fedrecplus.training.model_files import PrivateParts
from fedrecplus.training.run_folder import CONFIG, RunFolder
from fedrecplus.training.tally import Tally

LAST = "last.safetensors"
"""the server's state after the last round, as a checkpoint"""


def begin(
    folder: Path, config: Config, deployment: Deployment, catalogue: ItemCatalogue, data: Mapping[str, Any],
    *, overwrite: bool = False,
) -> None:  # fmt: skip
    """Make a run folder ready for its first round."""
    check_deployable(config)
    RunFolder(folder).check_free(overwrite=overwrite)
    for name in (JOURNAL, LOG, LAST):
        (folder / name).unlink(missing_ok=True)
    noted = {**data, "catalogue": catalogue.digest, "made": Stopwatch().began(config.seed)}
    RunFolder(folder).begin(config, noted, overwrite=overwrite)
    deployment.write(folder)
    write_catalogue(folder / ITEMS, catalogue)


def go_on(
    previous: Path, out: Path, config: Config, deployment: Deployment, catalogue: ItemCatalogue, *, overwrite: bool
) -> Config:
    """Begin a run with the model of a finished one; returns the config with the last round's number.

    Rounds are counted on. Devices know the model by its name and have their factors still.
    """
    last = Checkpoint.read(previous / LAST)
    if fixed_settings(load_config(previous / CONFIG)) != fixed_settings(config):
        raise UserError(f"{previous} was trained with other settings", "go on with the same; devices refuse others")
    if read_catalogue(previous / ITEMS).digest != catalogue.digest:
        raise UserError(f"{previous} was trained with another catalogue", f"give {previous / ITEMS} with --items")
    rounds = last.state.server.round + config.server.rounds
    config = replace(config, server=msgspec.structs.replace(config.server, rounds=rounds))
    deployment = replace(deployment, model=Deployment.read(previous).model)
    begin(out, config, deployment, catalogue, RunFolder(previous).data(), overwrite=overwrite)
    RunFolder(out).save_checkpoint(last)
    return config


def checkpoint_of(server: ServerState, tally: Tally) -> Checkpoint:
    """A checkpoint in the format of a simulation's, without clients."""
    nobody = PrivateState(np.zeros((0, 0)), np.zeros(0, bool), np.zeros(0, np.int32), np.zeros(0))
    return Checkpoint(SimulationState(server, nobody), tally, 0)


def write_result(
    folder: RunFolder, config: Config, catalogue: ItemCatalogue, state: ServerState, tally: Tally
) -> None:
    """Write model and result. The file of private parts is empty: they are on the devices."""
    # a later run that goes on with this model needs the server's momentum and last step, too
    checkpoint_of(state, Tally()).write(folder.path / LAST)
    catalogue.model(config, state.V).write(folder.path)
    nobody = np.zeros(0, dtype=np.int64)
    PrivateParts(np.zeros((0, 0)), np.zeros(1, dtype=np.int64), nobody, nobody, nobody).write(folder.path)
    folder.finish(_result(config, tally, Journal(folder.path).lines(), folder.data()))


def _result(config: Config, tally: Tally, lines: list[dict[str, Any]], data: dict[str, Any]) -> dict[str, Any]:
    """The figures of ``training.results``; errors are null, since test ratings would have to leave their devices."""
    last = lines[-1] if lines else {}
    unknown = dict.fromkeys(("fold", "mae", "rmse", "nmse", "train_ratings", "groups", "ranking"))
    fit = None if last.get("rmse") is None else {"mae": None, "rmse": last["rmse"], "nmse": None, "ratings": None}
    return {
        **unknown,
        "dataset": data.get("dataset"),
        "algorithm": config.algorithm,
        "seed": config.seed,
        "rounds": config.server.rounds,
        **tally.figures(),
        "test_ratings": 0,
        "cold_test_ratings": 0,
        "fit": fit,
        "retries": 0,
        "learning_rate": step_size(config)[1],
        "fingerprint": data.get("fingerprint"),
        "deployment": {
            "uploads": sum(len(line["clients"]) for line in lines),
            "dropouts": sum(len(line["lost"]) + len(line["silent"]) for line in lines),
            **last.get("refusals", {}),
        },
        "config": to_tables(config),
        "made": data.get("made"),
    }
