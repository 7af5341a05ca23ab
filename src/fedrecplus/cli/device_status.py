"""What a device has, has sent, and demands: ``device status``, ``sent``, ``policy``, ``models`` and ``rollback``."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
import typer

from fedrecplus.cli.declaring import takes
from fedrecplus.cli.device_home import DEFAULT_HOME, Home, PersonName, home_of, somebody
from fedrecplus.cli.display import say, show_table
from fedrecplus.deploy import device as devices
from fedrecplus.deploy.device import OWNER, Store

_SHOWN = 5
"""added items that are named"""


def status_command(
    home: Home = DEFAULT_HOME,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, on standard output.")] = False,
) -> None:
    """Show what is stored, everything that was ever sent, and what it cost this device."""
    with Store.open(home_of(home).store) as store:
        facts = _facts(store)
    if as_json:
        say(json.dumps(facts, indent=2))
        return
    of_whom = f" of {facts['persons']} persons" if facts["persons"] != 1 else ""
    say(f"{facts['ratings']} ratings{of_whom}, on the scale {facts['scale']}, in {facts['store']}")
    if facts["unknown_items"]:
        say(f"{facts['unknown_items']} of them are of items that the newest model doesn't know")
    sent, received = facts["bytes_sent"] / 1000, facts["bytes_received"] / 1000
    say(f"{len(facts['sent'])} messages, {sent:.1f} kB sent, {received:.1f} kB received")
    if facts["paused"]:
        say("paused: nothing leaves this device until `fedrecplus device resume`")
    memory = f", at most {facts['memory'] / 1e6:.0f} MB of memory" if facts["memory"] else ""  # Windows doesn't say
    say(f"{facts['seconds']:.2f} s computed{memory}")
    for line in [*_policy_lines(facts["policy"]), *_catalogue_lines(facts["catalogues"])]:
        say(line)
    say(f"noised sums have cost ε = {facts['spent_epsilon']:g} so far")
    pinned = facts["pinned_identities"]
    said = f"{pinned} identities are pinned" if pinned else "no identities are pinned (`node join --pin`)"
    claim = (
        "a server that lies is found out" if pinned else "they hide uploads from a server that keeps to the protocol"
    )
    say(f"secure sums: {said}: {claim}")
    headings = ["when", "model", "round", "what", "persons", "rows", "bytes", "again", "hash"]
    rows = [
        [line["at"], line["model"], str(line["round"]), line["stage"], str(line["persons"]), str(line["rows"]),
         str(line["bytes"]), "yes" if line["again"] else "", line["digest"][:12]]
        for line in facts["sent"]
    ]  # fmt: skip
    if rows:
        show_table(headings, rows, "everything that was ever sent")


def sent_command(home: Home = DEFAULT_HOME, person: PersonName = OWNER) -> None:
    """Show the last upload row by row. In the clear the server is sent items and changes, not which of them you rated,
    though it may be able to tell; under secure sums it is sent none of this.
    """
    with Store.open(home_of(home).store) as store:
        rows = devices.last_upload(store, somebody(store, person))
    cells = [[title or item, item, "yes" if rated else "", f"{change:.4f}"] for item, title, rated, change in rows]
    show_table(["title", "item", "rated", "change"], cells)


def _options_of_policy(**given: Any) -> dict[str, Any]:
    """The demands that were given, each an option that is declared with its field of ``Policy``."""
    changes = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return {name: value for name, value in changes.items() if value is not None}


def _declared(demand: msgspec.structs.FieldInfo) -> inspect.Parameter:
    """A demand as an option of the command line; left out, it stays as it is."""
    kind, meta = get_args(demand.type)
    names = [meta.extra["option"]] if meta.extra["option"] else []
    option = typer.Option(*names, min=meta.ge, help=meta.description)
    listed: Any = list[str] if get_origin(kind) is tuple else kind
    typed = Annotated[listed | None, option]
    return inspect.Parameter(demand.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=typed)


_DEMANDS = [demand for demand in msgspec.structs.fields(devices.Policy) if get_origin(demand.type) is Annotated]
_options_of_policy.__signature__ = inspect.Signature(list(map(_declared, _DEMANDS)))  # type: ignore[attr-defined]


@takes(changes=_options_of_policy)
def policy_command(home: Home = DEFAULT_HOME, *, changes: dict[str, Any]) -> None:
    """Show or change what you demand of a server: requests that ask for less protection are refused.

    \b
    Examples:
      fedrecplus device policy --channel secure --least-cohort 20
      fedrecplus device policy --pin
    """
    with Store.open(home_of(home).store) as store, store.changing():
        new = msgspec.structs.replace(devices.load_policy(store), **changes)
        new = devices.with_pin(store, new, new.pin) if "pin" in changes else new
        devices.save_policy(store, new)
    for line in _policy_lines(msgspec.to_builtins(new)):
        say(line)


def log_command(
    witness: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A witness's heads.jsonl, to compare with.")
    ] = None,
    key: Annotated[str, typer.Option(help="The witness's public key, which must have signed them.")] = "",
    home: Home = DEFAULT_HOME,
) -> None:
    """Show the public logs of tasks as servers told them to this device, for others to compare.

    Exits with 1 where a witness was told another log.
    """
    from fedrecplus.deploy.node import read_heads

    with Store.open(home_of(home).store) as store:
        logs = devices.known_logs(store)
        problems = devices.forks(store, read_heads(witness, key)) if witness is not None else []
    show_table(["task", "leaves", "root"], [[one.task[:16], str(len(one.leaves)), one.root.hex()] for one in logs])
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(1)


def models_command(home: Home = DEFAULT_HOME) -> None:
    """List the tables that servers have sent and this device has kept, newest first, and which one is used."""
    with Store.open(home_of(home).store) as store:
        tables = devices.seen_tables(store)
        used = devices.chosen_table(store)
        fixed = devices.is_chosen(store)
    show_table(
        ["model", "round", "when", "used"],
        [[one.model, str(one.round), one.at, "yes" if one == used else ""] for one in tables],
    )
    if fixed:
        say("chosen by you: newer ones are not used until `fedrecplus device rollback --newest`")


def rollback_command(
    model: Annotated[str, typer.Argument(help="The model's name, or how it begins; none: any.")] = "",
    round_number: Annotated[int | None, typer.Option("--round", help="The round of the table.")] = None,
    newest: Annotated[bool, typer.Option("--newest", help="Use the newest table again, and those to come.")] = False,
    home: Home = DEFAULT_HOME,
) -> None:
    """Recommend from an earlier table from now on, whatever comes: a training may have been spoiled.

    \b
    Examples:
      fedrecplus device rollback                    the one before the newest
      fedrecplus device rollback 3f2a --round 40
      fedrecplus device rollback --newest
    """
    with Store.open(home_of(home).store) as store:
        if newest:
            devices.use_newest(store)
            say("the newest table is used")
            return
        table = devices.choose_table(store, model, round_number)
    say(f"model {table.model}, round {table.round}, of {table.at} is used until `device rollback --newest`")


def _policy_lines(policy: dict[str, Any]) -> list[str]:
    """The owner's demands, in words."""
    rows = (
        "may show which items are rated" if policy["bare"] else f"have {policy['least_ratio']:g} pseudo items a rating"
    )
    lines = [f"policy: uploads by {', '.join(policy['channels'])}; those that show rows {rows}"]
    lines.append(f"policy: a secure sum is of {policy['least_cohort']} participants or more")
    if policy["demonstration"]:
        lines.append("policy: demonstrations are allowed: sums of so few people that they can be taken apart")
    task, life = (policy[name] for name in ("largest_epsilon", "lifetime_epsilon"))
    lines.append(f"policy: noised sums of ε = {task:g} a task at most, and {life:g} for life")
    if policy["pin"]:
        lines.append(f"policy: catalogue {policy['catalogue'] or '(the first that comes)'} and no other")
    return lines


def _catalogue_lines(catalogues: list[dict[str, Any]]) -> list[str]:
    return [
        f"catalogue {one['digest'][:12]}: {one['items']} items, {one['figures']}{_added(one)}" for one in catalogues
    ]


def _added(catalogue: dict[str, Any]) -> str:
    added = catalogue["added"]
    more = ", …" if len(added) > _SHOWN else ""
    return f"; {len(added)} were added: {', '.join(added[:_SHOWN])}{more}" if added else ""


def _facts(store: Store) -> dict[str, Any]:
    sent = store.sent()
    return {
        "store": str(store.path),
        "scale": str(store.scale),
        "persons": sum(len(ratings) > 0 for ratings in store.ratings().values()),
        "ratings": sum(len(ratings) for ratings in store.ratings().values()),
        "unknown_items": devices.unknown_items(store),
        "paused": devices.is_paused(store),
        "policy": msgspec.to_builtins(devices.load_policy(store)),
        "spent_epsilon": devices.spent(store),
        "pinned_identities": len(devices.Identities.load(store).pins),
        "catalogues": devices.known_catalogues(store),
        "models": [{**model, "settings": json.loads(model["settings"])} for model in store.models()],
        "sent": sent,
        "bytes_sent": sum(line["bytes"] for line in sent),
        "bytes_received": sum(line["received"] for line in sent),
        "seconds": sum(line["seconds"] for line in sent),
        "memory": max((line["memory"] for line in sent), default=0),
    }
