"""``fedrecplus deploy``: training across real machines."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.interrupt import terminated_like_interrupted
from fedrecplus.cli.live_view import show_rounds
from fedrecplus.cli.node import Address, Ca, Insecure
from fedrecplus.cli.options import Allow, Settings, config_of, load_with_bar, reads_own_files
from fedrecplus.cli.registry import SERVER_HOME
from fedrecplus.cli.server import Home as ServerPlace, server_at
from fedrecplus.config import Config, assign, change, check, load_config
from fedrecplus.data import FileOptions
from fedrecplus.deploy.node import (
    HEADS,
    ServerConnection,
    fetch_log,
    split_address,
    trust,
    witness_key,
    witness_log as keep_witness,
)
from fedrecplus.deploy.operate import ServerHome, run_local, run_to_the_end, seconds_of, train_again
from fedrecplus.deploy.server import Deployment, StoredRun, begin, go_on, has_run, most_persons, run_of
from fedrecplus.deploy.wire import ItemCatalogue, is_secure, read_identities
from fedrecplus.errors import UserError
from fedrecplus.training import CONFIG, RunFolder

deploy_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Training across real machines.")

Out = Annotated[Path, typer.Option(metavar="DIR", help="Run folder.")]
Quorum = Annotated[float, typer.Option(min=0.01, max=1.0, help="Share of asked nodes whose answers close a round.")]
Deadline = Annotated[float, typer.Option(min=1.0, help="Seconds after which a round closes anyway.")]
_LOCAL_NODES = 3
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")]


@deploy_app.command("run")
def run_command(
    out: Out,
    algorithm: Annotated[
        str | None, typer.Option(metavar="PRESET-OR-FILE", help="A preset or a TOML file; --resume needs none.")
    ] = None,
    items: Annotated[Path | None, typer.Option(metavar="FILE", help="The item catalogue; see `deploy items`.")] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Begin when this many nodes are connected.")] = 1,
    rounds: Annotated[int | None, typer.Option(min=1, help="How many rounds.")] = None,
    rounds_in_all: Annotated[
        int, typer.Option(min=0, help="Rounds that devices agree to, later runs --after this one included; 0: of this.")
    ] = 0,
    settings: Settings = None,
    quorum: Quorum = 1.0,
    deadline: Deadline = 120.0,
    cohort: Annotated[
        int,
        typer.Option(min=0, help="Close a round at this many answers, of somewhat more nodes that are asked; 0: all."),
    ] = 0,
    persons_per_node: Annotated[
        int | None,
        typer.Option(min=1, help="Most persons that a key may speak for. Default: 1 in secure sums, else 100,000."),
    ] = None,
    learn_bound: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="FACTOR", help="Scale updates down to FACTOR times recent rounds' median; 0: not."
        ),
    ] = 0.0,
    allow: Allow = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    pardon: Annotated[
        bool,
        typer.Option(
            "--pardon", help="With --resume: ask nodes again that were set aside; let people move between nodes."
        ),
    ] = False,
    after: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Go on with the model of a finished run; devices know it still.")
    ] = None,
    identities: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Identities that all nodes have pinned; secure sums are signed then."),
    ] = None,
    growth: Annotated[
        float,
        typer.Option(min=0.0, metavar="SHARE", help="Items that may be added later, as a share; devices agree to it."),
    ] = 0.0,
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Train again and again, such as 1d; runs are numbered folders in --out."),
    ] = None,
    overwrite: Overwrite = False,
    home: ServerPlace = SERVER_HOME,
) -> None:
    """Train with the nodes of this machine's server, show the rounds, and leave a run folder like any other.

    \b
    Examples, on the machine where `fedrecplus server up` runs:
      fedrecplus deploy items ml-100k --out items.safetensors
      fedrecplus deploy run --algorithm fedrec+secure --items items.safetensors --nodes 250 --out runs/first
      fedrecplus deploy run --resume --out runs/first
    """
    server = server_at(home)
    if resume:
        if not RunFolder(out).begun:
            raise UserError(f"{out} holds no run to resume", "check --out, or leave --resume out")
        chosen, run = load_config(out / CONFIG, allow or ()), run_of(server.database, out)
        if pardon:
            run.pardon()
        run.resume()
    else:
        if items is None:
            raise UserError(
                "no item catalogue is given", "make one with `fedrecplus deploy items`, give it with --items"
            )
        if algorithm is None:
            raise UserError("no algorithm is given", "give --algorithm PRESET; `fedrecplus presets` lists them")
        chosen = _with_devices(_with_seed(_config(algorithm, rounds, settings or []), after), nodes)
        keys = tuple(key.hex() for key in read_identities(identities)) if identities else ()
        persons = persons_per_node or most_persons(chosen)
        deployment = Deployment(
            nodes, quorum, deadline, clients_per_node=persons, learned_bound=learn_bound, cohort=cohort,
            identities=keys, rounds=rounds_in_all, growth=growth,
        )  # fmt: skip
        if every is not None:
            with terminated_like_interrupted():
                _train_again(server, out, seconds_of(every), chosen, deployment, items)
            return
        run = _begin(server, out, after, chosen, deployment, items, overwrite=overwrite)
    with terminated_like_interrupted():
        _finish(server, run, out, _rules_of(chosen))


@deploy_app.command("items")
@reads_own_files
def items_command(
    dataset: Annotated[str, typer.Argument(metavar="NAME-OR-FILE", help="A public data set of ratings of the items.")],
    options: FileOptions,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The catalogue to write.")] = Path("items.safetensors"),
    without_averages: Annotated[
        bool, typer.Option("--without-averages", help="Write no item's average rating; predictions do without.")
    ] = False,
    participants: Annotated[
        bool, typer.Option("--participants", help="The ratings are the participants' own, not a public data set's.")
    ] = False,
    add_to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A catalogue that keeps all it says, and gets the new items at its end."),
    ] = None,
) -> None:
    """Write the catalogue that a server runs with: ids, titles, features, popularity, averages.

    Averages are of three ratings and more; the values of other ratings are in no figure of it. Devices take a catalogue
    in the place of another one only if that was added to (--add-to), and not by more than they agreed to.
    """
    catalogue = ItemCatalogue.published(
        load_with_bar(dataset, options), averages=not without_averages, participants=participants
    )
    if add_to is not None:
        before = ItemCatalogue.read(add_to)
        catalogue = before.grown(catalogue)
        say(f"{len(catalogue.ids) - len(before.ids)} items are new")
    _refuse_again(catalogue, out)
    catalogue.write(out)
    say(f"{out}: {len(catalogue.ids)} items on the scale {catalogue.scale}, {catalogue.figures}")
    if catalogue.tells_participants:
        say("these are exact figures of the participants: write them once, before anybody else joins, and never again")


@deploy_app.command("witness")
def witness_command(
    address: Address,
    task: Annotated[list[str], typer.Option(help="Digest of a task; may be repeated.")],
    ca: Ca = None,
    insecure: Insecure = False,
    home: Annotated[Path, typer.Option(metavar="DIR", help="Where the witness keeps heads and key.")] = Path("witness"),
) -> None:
    """Keep the heads of a server's logs and sign them, on a machine that isn't the server's; run it now and then.

    Hand out heads.jsonl: devices compare it with `fedrecplus device log --witness`.
    """
    host, port = split_address(address)
    server = ServerConnection(host, port, None if insecure else trust(ca))
    for one in task:
        line = keep_witness(home, *fetch_log(server, one))
        say(f"task {one[:16]}: {line['size']} leaves, root {line['root']}")
    say(f"{home / HEADS}, signed by {witness_key(home)}")


@deploy_app.command("local")
@reads_own_files
def local_command(
    dataset: Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings to spread over the nodes.")],
    out: Out,
    options: FileOptions,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="How many nodes. Default: 3, or as many as a secure sum needs.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How many rounds.")] = 5,
    algorithm: Annotated[
        str, typer.Option(metavar="PRESET-OR-FILE", help="A preset or a TOML file.")
    ] = "fedrec+private",
    settings: Settings = None,
    simulated_keys: Annotated[
        bool, typer.Option("--simulated-keys", help="Secrets from the seed, to compare with a simulation.")
    ] = False,
    quorum: Quorum = 1.0,
    deadline: Deadline = 120.0,
    overwrite: Overwrite = False,
) -> None:
    """Server and nodes on this machine, for a try: the processes, certificates and keys of many machines."""
    chosen = _config(algorithm, rounds, settings or [])
    if nodes is None:
        nodes = max(_LOCAL_NODES, chosen.channel.least_cohort)
        say(f"{nodes} nodes on this machine, a demonstration; --nodes takes another number")
    ratings, deployment = load_with_bar(dataset, options), Deployment(nodes, quorum, deadline)
    with terminated_like_interrupted(), show_rounds(rounds) as show:
        run_local(ratings, chosen, out, deployment, show, say, simulated_keys=simulated_keys, overwrite=overwrite)
    _report(out)


def _begin(
    server: ServerHome, out: Path, after: Path | None, config: Config, deployment: Deployment, items: Path,
    *, overwrite: bool,
) -> StoredRun:  # fmt: skip
    """Put a run in line, of a new model or of an earlier run's."""
    catalogue = ItemCatalogue.read(items)
    if after is None:
        data = {"dataset": items.name}
        return begin(server.database, out, config, deployment, catalogue, data, overwrite=overwrite)
    return go_on(server.database, after, out, config, deployment, catalogue, overwrite=overwrite)


def _finish(server: ServerHome, run: StoredRun, out: Path, rules: list[str]) -> None:
    """Show a run's rounds, publish its model, and say what it came to."""
    with show_rounds(load_config(out / CONFIG, rules).server.rounds) as show:
        run_to_the_end(run, out, show, say)
    server.models.publish(out, rules)
    _report(out)


def _train_again(
    server: ServerHome, out: Path, every: float, config: Config, deployment: Deployment, items: Path
) -> None:
    """Run after run, each with the model of the one before; the newest is what nodes that join get.

    The file of items is read before each: what was added to it comes with the next run.
    """

    def start(folder: Path, before: Path | None) -> None:
        chosen = config if before is None else change(config, "seed", load_config(before / CONFIG, rules).seed)
        _begin(server, folder, before, chosen, deployment, items, overwrite=True)

    def run(folder: Path) -> None:
        followed = run_of(server.database, folder)
        followed.resume()  # where it ended before its last round
        _finish(server, followed, folder, rules)

    rules = _rules_of(config)
    train_again(out, every, lambda folder: has_run(server.database, folder), start, run, say)


def _rules_of(config: Config) -> list[str]:
    """What a folder may name: the rules of settings that the operator gave."""
    return [choice.rule for choice in config.choices]


def _with_seed(config: Config, after: Path | None) -> Config:
    """Settings with a seed: nodes unmask one sum of a table, so each model needs its own first one, and keeps it."""
    if not is_secure(config) or config.seed != 0:
        return config
    if after is None:
        return change(config, "seed", 1 + secrets.randbelow(2**31))
    return change(config, "seed", load_config(after / CONFIG, _rules_of(config)).seed)


def _config(name: str, rounds: int | None, settings: list[str]) -> Config:
    config = config_of(name)
    if rounds is not None:
        config = change(config, "server.rounds", rounds)
    config = assign(config, settings)
    if is_secure(config):  # a simulation may skip what hides nothing in it
        config = change(config, "channel.cryptography", "computed")
    return check(config)


def _with_devices(config: Config, nodes: int) -> Config:
    """Settings that say how many devices share the noise: as many as the run waits for, if nobody said."""
    if config.privacy.NOISE_ON_DEVICES and not config.privacy.settings.devices:
        return change(config, "privacy.devices", nodes)
    if config.privacy.rule == "none" and config.statistics.epsilon > 0.0 and not config.statistics.devices:
        return change(config, "statistics.devices", nodes)
    return config


def _refuse_again(catalogue: ItemCatalogue, out: Path) -> None:
    """Refuse exact figures of the participants in the place of others: the difference is the ratings of who joined."""
    if catalogue.tells_participants and out.exists():
        before = ItemCatalogue.read(out)
        if before.tells_participants and not catalogue.continues(before):
            raise UserError(
                f"{out} has exact figures of the participants, and these are others: whoever has both files knows the "
                "ratings of those who joined or left in between",
                "keep the catalogue that there is, or count in a public data set",
            )


def _report(out: Path) -> None:
    result = RunFolder(out).result()
    headings = ["algorithm", "rounds", "loss", "seconds", "KB up", "KB down", "uploads", "dropouts"]
    traffic = [f"{result[f'bytes_{direction}_per_client_round'] / 1000:.1f}" for direction in ("up", "down")]
    loss = "–" if result["fit"] is None else f"{result['fit']['rmse']:.4f}"
    counts = [str(result["deployment"][name]) for name in ("uploads", "dropouts")]
    row = [result["algorithm"], str(result["rounds"]), loss, f"{result['seconds']:.1f}", *traffic, *counts]
    show_table(headings, [row])
    say(f"run folder: {out}")
