"""A new run that goes on with the model of a finished one: devices know it by its name and have their factors still."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedrecplus.config import Config, load_config
from fedrecplus.deploy.catalogue import ITEMS, ItemCatalogue
from fedrecplus.deploy.participation import settings_text
from fedrecplus.deploy.running import begin
from fedrecplus.deploy.settings import Deployment
from fedrecplus.deploy.starting import LAST
from fedrecplus.errors import UserError
from fedrecplus.training.checkpoint import Checkpoint
from fedrecplus.training.run_folder import CONFIG, RunFolder


def go_on(
    previous: Path, out: Path, config: Config, deployment: Deployment, catalogue: ItemCatalogue, *, overwrite: bool
) -> Config:
    """Begin a run where another ended; its rounds are counted on. Returns the config with the last round's number."""
    began, last = load_config(previous / CONFIG), Checkpoint.read(previous / LAST)
    if settings_text(began) != settings_text(config):
        raise UserError(f"{previous} was trained with other settings", "go on with the same; devices refuse others")
    if ItemCatalogue.read(previous / ITEMS).digest != catalogue.digest:
        raise UserError(f"{previous} was trained with another catalogue", f"give {previous / ITEMS} with --items")
    rounds = last.state.server.round + config.server.rounds
    config = replace(config, server=replace(config.server, rounds=rounds))
    deployment = replace(deployment, model=Deployment.read(previous).model)
    begin(out, config, deployment, catalogue, RunFolder(previous).data(), overwrite=overwrite)
    RunFolder(out).save_checkpoint(last)
    return config
