"""A deployed run from its beginning in the database to the run folder that it leaves."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fedrecplus.config import Config, change, dumps, load_config, to_tables
from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.published import keep_object
from fedrecplus.deploy.server.statistics import awaits_statistics
from fedrecplus.deploy.server.stored_run import FINISHED, DatabaseBook, StoredRun
from fedrecplus.deploy.server.task_log import append, log_key
from fedrecplus.deploy.server.terms import Deployment
from fedrecplus.deploy.wire.catalogue import ITEMS, ItemCatalogue
from fedrecplus.deploy.wire.request import check_deployable
from fedrecplus.deploy.wire.ring import check_vector, deployed_budget, sum_terms
from fedrecplus.deploy.wire.settings import fixed_settings
from fedrecplus.deploy.wire.stages import is_secure
from fedrecplus.deploy.wire.steps import grown_state, sum_arrays
from fedrecplus.deploy.wire.task import Task
from fedrecplus.engines import SimulationState
from fedrecplus.errors import UserError
from fedrecplus.files import write_json, write_tensors, write_text
from fedrecplus.parts.privacy import Release, check_delta, epsilon_of
from fedrecplus.provenance import Stopwatch
from fedrecplus.rounds import ServerState, plan_of
from fedrecplus.training import (
    CONFIG,
    LEDGER,
    METRICS,
    PUBLIC_LIST,
    Checkpoint,
    Ledger,
    RunFolder,
    Tally,
    channel_of,
    nobodys_parts,
    privacy_of,
    read_tensors,
    step_size,
)

DEPLOYMENT, JOURNAL = "deployment.json", "journal.jsonl"
"""which run of the database a folder is of; a line for each round"""
LAST, TOLD = "last.safetensors", "told.safetensors"
"""the server's state after the last round, and the sum that made it, to go on from"""
_MOST_KEPT = 32e6
"""bytes of a task's sums that are kept for devices that missed rounds"""


def begin(
    database: Database, folder: Path, config: Config, deployment: Deployment, catalogue: ItemCatalogue,
    data: Mapping[str, Any], *, overwrite: bool = False, checkpoint: Checkpoint | None = None,
    told: Mapping[str, Any] | None = None,
) -> StoredRun:  # fmt: skip
    """Put a run in line, and make its folder ready."""
    check_deployable(config)
    if is_secure(config):
        _check_sums(config, deployment, catalogue)
    if config.privacy.rule != "none":
        _check_claim(config, deployment, catalogue)
    elif awaits_statistics(config, catalogue):
        check_delta(config.statistics.delta, deployment.nodes)
    if not deployment.task:
        first = 0 if checkpoint is None else checkpoint.state.server.round
        first = -1 if awaits_statistics(config, catalogue) else first
        with database.changing() as connection:
            signer = log_key(connection).public_key().public_bytes_raw().hex()
        deployment = replace(deployment, task=_new_task(config, catalogue, deployment, first, signer).text)
    noted = {**data, "catalogue": catalogue.digest, "made": Stopwatch().began(config.seed)}
    RunFolder(folder).begin(config, noted, overwrite=overwrite)
    for name in (JOURNAL, LAST, TOLD, LEDGER):
        (folder / name).unlink(missing_ok=True)
    with database.changing() as connection:
        number = StoredRun.create(connection, config, deployment, catalogue, noted, checkpoint, told)
        keep_object(connection, deployment.task.encode())  # whoever joins reads it
        append(connection, Task.parse(deployment.task).digest, 0, deployment.task)
        # within the transaction: a run that no folder names would be worked on, and its first table be used up
        write_json(folder / DEPLOYMENT, {"run": number, "model": deployment.model, "task": deployment.task})
    run = StoredRun(database, number)
    if (ledger := ledger_of(run.book, config, deployment.model, catalogue)) is not None:
        ledger.before_statistics()  # the catalogue's: nodes get them with the first request
    catalogue.write(folder / ITEMS)
    return run


def _new_task(config: Config, catalogue: ItemCatalogue, deployment: Deployment, first: int, signer: str) -> Task:
    """What the devices of a run are asked to agree to."""
    rounds = max(deployment.rounds, config.server.rounds)
    size = len(catalogue.ids) * config.model.columns * np.dtype(config.precision).itemsize
    kept = min(rounds, int(_MOST_KEPT / max(size, 1)))
    return Task.of(deployment.model, config, catalogue, rounds, first, signer, deployment.growth, kept)


def run_of(database: Database, folder: Path) -> StoredRun:
    """The run that a folder is of."""
    try:
        said = json.loads((folder / DEPLOYMENT).read_text(encoding="utf-8"))
        run, model = StoredRun(database, int(said["run"])), str(said["model"])
    except OSError:
        raise UserError(f"{folder} holds no deployment", "start one with `deploy run`") from None
    except (ValueError, KeyError, TypeError):
        remedy = "put it back from a copy, or go on by `deploy run --after` an earlier run"
        raise UserError(f"{folder / DEPLOYMENT} is damaged", remedy) from None
    if run.deployment.model != model:
        raise UserError(f"{folder} is of another database's run {run.number}", "check --home and --out")
    return run


def has_run(database: Database, folder: Path) -> bool:
    """Whether it is of a run that is there: whoever was killed while one began left the half of one."""
    with contextlib.suppress(UserError):
        run_of(database, folder)
        return True
    return False


def ledger_of(book: DatabaseBook, config: Config, model: str, catalogue: ItemCatalogue) -> Ledger | None:
    """The ledger of a run: of its rounds, or of its statistics alone; None where it has no budget."""
    ledger = Ledger.of_model(book, config, model)
    if ledger is not None or not awaits_statistics(config, catalogue):
        return ledger
    return Ledger.of_model(book, config, model, deployed_budget(config)[0])


def _check_sums(config: Config, deployment: Deployment, catalogue: ItemCatalogue) -> None:
    """Refuse what no secure sum can come of."""
    model, groups = config.model, config.channel.settings.groups
    least, apart = config.channel.settings.least_cohort, f", each of {groups} groups," * (groups > 1)
    if deployment.nodes < groups * least:
        raise UserError(
            f"{deployment.nodes} nodes are no cohort: a secure sum{apart} is of {least} nodes or more",
            "ask for more --nodes, or set channel.least_cohort, which nodes may refuse",
        )
    V = model.start_items(config.seed, len(catalogue.ids), catalogue.public)
    check_vector(config, V.shape)
    persons = sum_terms(config, catalogue.public, V.shape, 0).least_persons
    if deployment.nodes < groups * persons and deployment.clients_per_node == 1:
        raise UserError(
            f"{deployment.nodes} persons are too few: sums{apart} of {V.shape[1]} columns over fewer than {persons} "
            "can be taken apart, and devices refuse them",
            "ask for more --nodes, or, where nothing is at stake, set channel.demonstration=true, to which every owner "
            "must agree",
        )


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
    database: Database, previous: Path, out: Path, config: Config, deployment: Deployment, catalogue: ItemCatalogue,
    *, overwrite: bool,
) -> StoredRun:  # fmt: skip
    """Put a run in line that goes on with the model of a finished one, and with what was added to its items.

    Rounds are counted on. Devices know the model by its name and have their factors still. They go on with what they
    agreed to; more rounds or items than that are another task, to which they are asked anew.
    """
    last = Checkpoint.read(previous / LAST)
    named = [choice.rule for choice in config.choices]  # a folder makes nobody import what they didn't name themselves
    earlier = load_config(previous / CONFIG, named)
    if fixed_settings(earlier) != fixed_settings(config):
        raise UserError(f"{previous} was trained with other settings", "go on with the same; devices refuse others")
    if not catalogue.continues(ItemCatalogue.read(previous / ITEMS)):
        raise UserError(
            f"{previous} was trained with another catalogue: devices take items that are added to theirs, and no other "
            "change",
            f"add the new ones by `deploy items DATA --add-to {previous / ITEMS}`, or begin a new model",
        )
    config = change(config, "server.rounds", last.state.server.round + config.server.rounds)
    before = json.loads((previous / DEPLOYMENT).read_text(encoding="utf-8"))
    try:
        agreed = str(before["task"])
        task = Task.parse(agreed)
    except (KeyError, ValueError, msgspec.MsgspecError):
        problem = f"{previous} names no task that this version reads"
        raise UserError(problem, "go on with the fedrecplus that wrote it, or begin a new model") from None
    if not task.has_room(config.server.rounds, len(catalogue.ids)):
        agreed = ""
    model, rounds, data = str(before["model"]), earlier.server.rounds, RunFolder(previous).data()
    deployment = replace(deployment, model=model, task=agreed, earlier_rounds=rounds)
    server = grown_state(last.state.server, catalogue.public, config)
    last = replace(last, state=replace(last.state, server=server))
    told = read_tensors(previous / TOLD)[0] if (previous / TOLD).exists() else None
    return begin(database, out, config, deployment, catalogue, data, overwrite=overwrite, checkpoint=last, told=told)


def export(run: StoredRun, folder: Path) -> None:
    """Write what the database has of a run into its folder; a finished one becomes a folder like any other."""
    config, state = run.config(), run.checkpoint()
    write_text(folder / CONFIG, dumps(config))
    run.catalogue.write(folder / ITEMS)
    for name, lines in ((JOURNAL, run.lines()), (METRICS, run.metrics()), (LEDGER, run.book.lines())):
        if lines or name == METRICS:
            write_text(folder / name, "".join(json.dumps(line) + "\n" for line in lines))
    if run.phase == FINISHED and state is not None:
        _write_result(RunFolder(folder), run, config, state)


def journal_of(folder: Path) -> list[dict[str, Any]]:
    """The rounds in an exported folder."""
    path = folder / JOURNAL
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def checkpoint_of(server: ServerState, tally: Tally) -> Checkpoint:
    """A checkpoint in the format of a simulation's, without clients."""
    return Checkpoint(SimulationState.of_server(server), tally, 0)


def _write_result(folder: RunFolder, run: StoredRun, config: Config, last: Checkpoint) -> None:
    """Write model and result. The file of private parts is empty: they are on the devices."""
    state, catalogue = last.state.server, run.catalogue
    # a later run that goes on with this model needs the server's momentum and last step, too
    checkpoint_of(state, Tally()).write(folder.path / LAST)
    if (sums := run.sums()) is not None:
        write_tensors(folder.path / TOLD, sum_arrays(sums, config), {}, private=False)
    catalogue.model(config, state.V, state.dense).write(folder.path)
    nobodys_parts().write(folder.path)
    public = catalogue.public
    privacy = privacy_of(config, public, 0, Ledger.of_model(run.book, config, run.deployment.model))
    told = {"privacy": privacy, "statistics": {"source": public.source, "epsilon": public.epsilon}}
    folder.finish({**_result(config, last.tally, run.lines(), folder.data()), **told})


def _result(config: Config, tally: Tally, lines: list[dict[str, Any]], data: dict[str, Any]) -> dict[str, Any]:
    """The figures of ``training.run``; errors are null, since test ratings would have to leave their devices."""
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
        "item_list": PUBLIC_LIST,  # devices have the catalogue before they have a rating to send
        "config": to_tables(config),
    }
