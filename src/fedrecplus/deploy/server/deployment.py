"""A deployed run's folder: its settings and lock, its beginning, and its end as far as a server knows it."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fedrecplus import __version__
from fedrecplus.config import Config, change, load_config, to_tables
from fedrecplus.deploy.server.journal import JOURNAL, Journal
from fedrecplus.deploy.server.statistics import awaits_statistics
from fedrecplus.deploy.wire import (
    ITEMS,
    ItemCatalogue,
    check_deployable,
    check_vector,
    deployed_budget,
    fixed_settings,
    is_secure,
)
from fedrecplus.engines import PrivateState, SimulationState
from fedrecplus.errors import UserError
from fedrecplus.files import locked, write_json
from fedrecplus.parts.privacy import Release, check_delta, epsilon_of
from fedrecplus.provenance import Stopwatch
from fedrecplus.rounds import ServerState, plan_of
from fedrecplus.training.checkpoint import Checkpoint
from fedrecplus.training.divergence import step_size
from fedrecplus.training.model_files import nobodys_parts
from fedrecplus.training.privacy import Ledger, privacy_of
from fedrecplus.training.results import channel_of
from fedrecplus.training.run_folder import CHECKPOINT, CONFIG, RunFolder
from fedrecplus.training.tally import Tally

DEPLOYMENT, LOG = "deployment.json", "server.log"
log = logging.getLogger("fedrecplus")
PENDING = "sum.pending"
"""a secure sum that is being unmasked: masked figures of a whole cohort, and who is in it"""
LAYOUT = 2
"""of a run folder; a later one is refused"""
LAST, PREVIOUS = "last.safetensors", "checkpoint.previous.safetensors"
"""the server's state after the last round, as a checkpoint"""


@dataclass(frozen=True)
class Deployment:
    """When a round begins and ends, and what an upload may be: no part of the algorithm, and so none of the config."""

    nodes: int = 1
    """a round begins when so many nodes are connected"""
    quorum: float = 1.0
    """a round closes when this share of the asked nodes has answered ..."""
    deadline: float = 120.0
    """... or after so many seconds"""
    patience: float = 600.0
    """seconds without a single upload after which the run gives up"""
    clients_per_node: int = 100_000
    """most persons that one node may speak for"""
    largest_change: float = 50.0
    """greatest number in a client's update that is believed; honest ones stay below 12 on MovieLens-100K"""
    learned_bound: float = 0.0
    """updates are scaled down to so many times the median of recent rounds' uploads; 0: they aren't"""
    cohort: int = 0
    """nodes whose answers close a round; 0: as many as ``cohort.fraction`` of those connected"""
    strikes: int = 3
    """refused answers after which a node is set aside"""
    keyed: bool = True
    """nodes are known by their keys, not by a number that changes whenever they connect; noted at each submission"""
    identities: tuple[str, ...] = ()
    """public keys that participants of secure sums sign with; empty where nobody has pinned them"""
    model: str = field(default_factory=lambda: secrets.token_hex(8))
    """name that devices keep their factors under; stays the same when a run is resumed"""
    layout: int = 1
    """of the folder's files, as they are on the disk; noted since 2"""

    def write(self, folder: Path) -> None:
        """Write it into a run folder."""
        write_json(folder / DEPLOYMENT, {**asdict(self), "layout": LAYOUT})

    @classmethod
    def read(cls, folder: Path) -> Deployment:
        """Read what ``write`` wrote, this version's or an earlier one's."""
        try:
            found = msgspec.json.decode((folder / DEPLOYMENT).read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            raise UserError(f"{folder} holds no deployment: {error}", "start one with `deploy run`") from None
        if found.layout > LAYOUT:
            raise UserError(
                f"{folder} has layout {found.layout}; fedrecplus {__version__} knows layouts up to {LAYOUT}",
                "upgrade fedrecplus here, or begin another run; the folder is left as it is",
            )
        return found


def only_server_of(folder: Path, patience: float = 120.0) -> contextlib.AbstractContextManager[None]:
    """Hold the folder's lock. A killed SuperLink can leave its app behind for a while, and a new one must wait."""
    return locked(folder / ".lock", f"{folder} as its server", "stop it first", patience)


def is_served(folder: Path) -> bool:
    """Whether a server app works in the folder at this moment."""
    with contextlib.suppress(UserError), only_server_of(folder, patience=0.0):
        return False
    return True


def begin(
    folder: Path, config: Config, deployment: Deployment, catalogue: ItemCatalogue, data: Mapping[str, Any],
    *, overwrite: bool = False,
) -> None:  # fmt: skip
    """Make a run folder ready for its first round."""
    check_deployable(config)
    if is_secure(config):
        _check_sums(config, deployment, catalogue)
    if config.privacy.rule != "none":
        _check_claim(config, deployment, catalogue)
    elif awaits_statistics(config, catalogue):
        check_delta(config.statistics.delta, deployment.nodes)
    RunFolder(folder).check_free(overwrite=overwrite)
    for name in (JOURNAL, LOG, LAST, PENDING, PREVIOUS):
        (folder / name).unlink(missing_ok=True)
    noted = {**data, "catalogue": catalogue.digest, "made": Stopwatch().began(config.seed)}
    RunFolder(folder).begin(config, noted, overwrite=overwrite)
    deployment.write(folder)
    catalogue.write(folder / ITEMS)
    if (ledger := Ledger.of_model(folder, config, deployment.model)) is not None:
        ledger.before_statistics()  # the catalogue's: nodes get them with the first request
    elif awaits_statistics(config, catalogue):
        budget = deployed_budget(config)[0]
        Ledger.of_statistics(folder, config, deployment.model, budget).before_statistics()


def _check_sums(config: Config, deployment: Deployment, catalogue: ItemCatalogue) -> None:
    """Refuse what no secure sum can come of."""
    model, least = config.model, config.channel.settings.least_cohort
    if deployment.nodes < least:
        raise UserError(
            f"{deployment.nodes} nodes are no cohort: a secure sum is of {least} nodes or more",
            "ask for more --nodes, or set channel.least_cohort, which nodes may refuse",
        )
    V = model.start_items(config.seed, len(catalogue.ids), catalogue.public)
    check_vector(config, V.shape)


def _check_claim(config: Config, deployment: Deployment, catalogue: ItemCatalogue) -> None:
    """Refuse a budget that the catalogue's figures are no part of, and a δ that means nothing for so many people."""
    public, options, plan = catalogue.public, config.privacy.settings, plan_of(config)
    rule, remedy = f"privacy.rule={config.privacy.rule}", "make a catalogue of a public data set with `deploy items`"
    if catalogue.tells_participants:
        raise UserError(f"{rule} with {catalogue.figures}, which are no part of any budget", remedy)
    source = "public" if catalogue.is_public else public.source
    if awaits_statistics(config, catalogue):
        source = config.statistics.source  # one sum is taken before the first round
    if source != config.statistics.source:
        raise UserError(
            f"statistics.source={config.statistics.source}, and the catalogue has {catalogue.figures}",
            f"set statistics.source={source}, or {remedy}",
        )
    if public.epsilon is not None and plan is not None and plan.statistics is not None:
        share = epsilon_of([Release(plan.statistics)], options.delta, plan.accountant)
        if public.epsilon > share * (1.0 + 1e-9):
            raise UserError(
                f"the catalogue's figures cost ε = {public.epsilon:g}, and the budget has {share:g} for them",
                "set a greater privacy.statistics_share or privacy.epsilon, or take a catalogue with more noise",
            )
    check_delta(options.delta, deployment.nodes if catalogue.is_public else max(deployment.nodes, public.people))


def go_on(
    previous: Path, out: Path, config: Config, deployment: Deployment, catalogue: ItemCatalogue, *, overwrite: bool
) -> Config:
    """Begin a run with the model of a finished one; returns the config with the last round's number.

    Rounds are counted on. Devices know the model by its name and have their factors still.
    """
    last = Checkpoint.read(previous / LAST)
    named = [choice.rule for choice in config.choices]  # a folder makes nobody import what they didn't name themselves
    if fixed_settings(load_config(previous / CONFIG, named)) != fixed_settings(config):
        raise UserError(f"{previous} was trained with other settings", "go on with the same; devices refuse others")
    if ItemCatalogue.read(previous / ITEMS).digest != catalogue.digest:
        raise UserError(
            f"{previous} was trained with another catalogue, to which devices have pinned themselves, with the pseudo "
            "items that they keep: a deployed model can't take new items",
            f"give {previous / ITEMS} with --items, or begin a new model; a simulation goes on by `train --from`",
        )
    config = change(config, "server.rounds", last.state.server.round + config.server.rounds)
    deployment = replace(deployment, model=Deployment.read(previous).model)
    begin(out, config, deployment, catalogue, RunFolder(previous).data(), overwrite=overwrite)
    RunFolder(out).save_checkpoint(last)
    return config


def save_checkpoint(folder: RunFolder, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, and keep the one before it: a disk may lose what it said it has."""
    current = folder.path / CHECKPOINT
    if current.exists():
        current.replace(folder.path / PREVIOUS)
    folder.save_checkpoint(checkpoint)


def last_checkpoint(folder: RunFolder) -> Checkpoint | None:
    """The newest checkpoint that can be read; a damaged one is said and left aside."""
    for path in (folder.path / CHECKPOINT, folder.path / PREVIOUS):
        try:
            if path.exists():
                return Checkpoint.read(path)
        except (UserError, KeyError, ValueError) as error:
            log.error("%s: %s; going on from the one before it", path, error)
            path.replace(path.with_name(f"{path.name}.damaged"))
    return None


def checkpoint_of(server: ServerState, tally: Tally) -> Checkpoint:
    """A checkpoint in the format of a simulation's, without clients."""
    nobody = PrivateState(np.zeros((0, 0)), np.zeros(0, bool), np.zeros(0, np.int32), np.zeros(0))
    return Checkpoint(SimulationState(server, nobody), tally, 0)


def write_result(folder: RunFolder, config: Config, catalogue: ItemCatalogue, state: ServerState, tally: Tally) -> None:
    """Write model and result. The file of private parts is empty: they are on the devices."""
    # a later run that goes on with this model needs the server's momentum and last step, too
    checkpoint_of(state, Tally()).write(folder.path / LAST)
    catalogue.model(config, state.V).write(folder.path)
    nobodys_parts().write(folder.path)
    public, model = catalogue.public, Deployment.read(folder.path).model
    privacy = privacy_of(config, public, 0, seeded=False)
    if privacy is not None and (ledger := Ledger.of_model(folder.path, config, model)) is not None:
        privacy["epsilon"] = ledger.spent()  # a round that was repeated after a crash is paid for twice
    (folder.path / PREVIOUS).unlink(missing_ok=True)
    told = {"privacy": privacy, "statistics": {"source": public.source, "epsilon": public.epsilon}}
    folder.finish({**_result(config, tally, Journal(folder.path).lines(), folder.data()), **told})


def _result(config: Config, tally: Tally, lines: list[dict[str, Any]], data: dict[str, Any]) -> dict[str, Any]:
    """The figures of ``training.results``; errors are null, since test ratings would have to leave their devices."""
    last = lines[-1] if lines else {}
    unknown = dict.fromkeys(("fold", "mae", "rmse", "nmse", "train_ratings", "groups", "ranking"))
    fit = None if last.get("rmse") is None else {"mae": None, "rmse": last["rmse"], "nmse": None, "ratings": None}
    return {
        **unknown,
        **{name: data.get(name) for name in ("dataset", "fingerprint", "made")},
        **{"algorithm": config.algorithm, "seed": config.seed, "rounds": config.server.rounds},
        **channel_of(config),
        **tally.figures(),
        **{"test_ratings": 0, "cold_test_ratings": 0, "fit": fit, "retries": 0, "learning_rate": step_size(config)[1]},
        "deployment": {
            "uploads": sum(line["uploads"] for line in lines),
            "dropouts": sum(len(line["lost"]) + len(line["silent"]) for line in lines),
            **last.get("refusals", {}),
        },
        "config": to_tables(config),
    }
