"""``fedrecplus device``: a person's ratings on their own disk."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.lists import By, Explore, IncludeSeen, Length, Why, as_rows, show_top_list
from fedrecplus.cli.outputs import JsonFile, check_file_place
from fedrecplus.data.scale import Scale
from fedrecplus.deploy import device as devices
from fedrecplus.deploy.device import BATCH, OWNER, Store, find_item
from fedrecplus.deploy.light import NodeHome
from fedrecplus.errors import UserError
from fedrecplus.files import write_json_to

device_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Your ratings, on your own disk.")

DEFAULT_HOME = Path("~/.fedrecplus/device")
Home = Annotated[
    Path, typer.Option(metavar="DIR", help="Where the device keeps everything, unless FEDRECPLUS_DEVICE names a place.")
]
ModelOf = Annotated[
    Path | None, typer.Option(metavar="RUN", help="A run folder whose model to use, instead of the newest one seen.")
]
PersonName = Annotated[str, typer.Option("--person", help="In a silo: whose ratings.")]


def home_of(path: Path) -> NodeHome:
    """The device's folder."""
    elsewhere = os.environ.get("FEDRECPLUS_DEVICE") if path == DEFAULT_HOME else None
    return NodeHome(Path(elsewhere or path).expanduser())


@device_app.command()
def init(
    home: Home = DEFAULT_HOME,
    scale: Annotated[str, typer.Option(metavar="LOW:HIGH:STEP", help="The scale you rate on.")] = "1:5:1",
    batch: Annotated[int, typer.Option(min=1, help="Changes that enter uploads together.")] = BATCH,
) -> None:
    """Make an empty store of ratings that only you can read, with a secret from the operating system."""
    device = home_of(home)
    Store.create(device.store, Scale.parse(scale), batch=batch)
    say(f"made {device.store}")


@device_app.command()
def rate(
    item: Annotated[str, typer.Argument(help="The item's id, or its title as far as it is the only one.")],
    stars: Annotated[float | None, typer.Argument(help="Your rating; leave it away with --remove.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the rating back.")] = False,
    home: Home = DEFAULT_HOME,
    person: PersonName = OWNER,
) -> None:
    """Rate an item, change a rating, or take it back.

    \b
    Examples:
      fedrecplus device rate 1193 5
      fedrecplus device rate "One Flew Over" 5
      fedrecplus device rate 1193 --remove

    Uploads take changes in batches, among new pseudo items; recommendations take them at once.
    """
    if (stars is None) != remove:
        raise UserError("give either a rating or --remove", "write, for example, device rate 1193 5")
    with Store.open(home_of(home).store) as store:
        number, found = _person(store, person), _found(store, item, _person(store, person))
        called = f"{found.item}, {found.title}" if found.title else found.item
        if stars is None:
            store.unrate(found.item, number)
            say(f"took back the rating of {called}")
            return
        store.rate({found.item: stars}, number)
    unseen = "" if found.known else "; no server has sent its items yet, so nobody knows whether there is such an id"
    say(f"rated {called}: {stars:g}{unseen}")


@device_app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="Lines of item and rating; with --silo, of user, item and rating.")],
    silo: Annotated[bool, typer.Option("--silo", help="The file has the ratings of many persons.")] = False,
    home: Home = DEFAULT_HOME,
) -> None:
    """Take ratings from a file."""
    with Store.open(home_of(home).store) as store:
        if silo:
            persons, ratings = devices.import_many(store, file)
            say(f"{ratings} ratings of {persons} persons are stored")
        else:
            say(f"{devices.import_own(store, file)} ratings are stored")


@device_app.command()
def status(
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
    say(f"{facts['seconds']:.2f} s computed, at most {facts['memory'] / 1e6:.0f} MB of memory")
    for line in [*_policy_lines(facts["policy"]), *_catalogue_lines(facts["catalogues"])]:
        say(line)
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


@device_app.command()
def sent(home: Home = DEFAULT_HOME, person: PersonName = OWNER) -> None:
    """Show the last upload row by row. In the clear the server knows the items, not which of them you rated; under
    secure sums it knows none of this.
    """
    with Store.open(home_of(home).store) as store:
        rows = devices.last_upload(store, _somebody(store, person))
    cells = [[title or item, item, "yes" if rated else "", f"{change:.4f}"] for item, title, rated, change in rows]
    show_table(["title", "item", "rated", "change"], cells)


@device_app.command()
def policy(
    least_ratio: Annotated[float | None, typer.Option(min=0.0, help="Fewest pseudo items per rated item.")] = None,
    channel: Annotated[
        list[str] | None, typer.Option("--channel", help="How uploads may travel: clear, secure; repeatable.")
    ] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--no-pin", help="Take no catalogue but the newest one seen, or the first.")
    ] = None,
    least_cohort: Annotated[int | None, typer.Option(min=2, help="Fewest participants of a secure sum.")] = None,
    allow_bare: Annotated[
        bool | None,
        typer.Option("--allow-bare/--refuse-bare", help="Whether the server may see what you rated."),
    ] = None,
    home: Home = DEFAULT_HOME,
) -> None:
    """Show or change what you demand of a server: requests that ask for less protection are refused.

    \b
    Examples:
      fedrecplus device policy --channel secure --least-cohort 20
      fedrecplus device policy --pin
    """
    import msgspec  # here and below: who only rates an item need not wait for it

    changes = {
        "least_ratio": least_ratio,
        "channels": tuple(channel) if channel else None,
        "least_cohort": least_cohort,
        "bare": allow_bare,
    }
    with Store.open(home_of(home).store) as store, store.changing():
        new = msgspec.structs.replace(
            devices.load_policy(store), **{name: value for name, value in changes.items() if value is not None}
        )
        new = new if pin is None else devices.with_pin(store, new, pin)
        devices.save_policy(store, new)
    for line in _policy_lines(msgspec.to_builtins(new)):
        say(line)


@device_app.command("scale")
def scale_command(
    scale: Annotated[str, typer.Argument(metavar="LOW:HIGH:STEP", help="The scale that the server's items are on.")],
    home: Home = DEFAULT_HOME,
) -> None:
    """Rate on another scale; ratings that are stored keep their values, and must be on it."""
    with Store.open(home_of(home).store) as store:
        store.change_scale(Scale.parse(scale))


@device_app.command("recommend")
def recommend_command(
    n: Length = 10,
    by: By = "list",
    include_seen: IncludeSeen = False,
    explore: Explore = 0.0,
    why: Why = True,
    model: ModelOf = None,
    home: Home = DEFAULT_HOME,
    person: PersonName = OWNER,
    json_file: JsonFile = None,
) -> None:
    """Show what you would like best. Computed here, from your ratings and a public table: nothing is sent."""
    from fedrecplus.training.lists import Wish

    check_file_place(json_file)
    wish = Wish(n, by, not include_seen, explore, why)
    device = home_of(home)
    with Store.open(device.store) as store:
        if model is None and not store.models():
            model = device.first_model
        found = devices.top_list(store, _somebody(store, person), wish, model)
    write_json_to(json_file, as_rows(found))
    show_top_list(found)


@device_app.command("pause")
def pause_command(home: Home = DEFAULT_HOME) -> None:
    """Take part in no round from now on: a server is told that this device pauses, and nothing else leaves it."""
    with Store.open(home_of(home).store) as store:
        devices.pause(store, True)
    say("paused: nothing leaves this device until `fedrecplus device resume`")


@device_app.command("resume")
def resume_command(home: Home = DEFAULT_HOME) -> None:
    """Take part in rounds again."""
    with Store.open(home_of(home).store) as store:
        devices.pause(store, False)
    say("this device takes part in rounds")


@device_app.command("page")
def page_command(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 0,
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open it in your browser.")] = False,
    model: ModelOf = None,
    home: Home = DEFAULT_HOME,
    person: PersonName = OWNER,
) -> None:
    """Rate, see your list and everything that was sent, and pause, on a page of your own.

    It is on 127.0.0.1 alone, for whoever has the link: other users of this machine and other pages in your browser are
    kept out. What you rate there is what `device rate` stores. Ctrl-C ends it, and the link with it.
    """
    from fedrecplus.web.device_page.run import serve_page  # here: it brings what most commands don't need

    device = home_of(home)
    with Store.open(device.store) as store:
        number = _person(store, person)
    serve_page(device, number, port=port, run=model, show=show, say=say)


@device_app.command("forget")
def forget_command(
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False, home: Home = DEFAULT_HOME
) -> None:
    """Delete ratings, factors, secret, key and log here. What the server aggregated can't be taken back."""
    device = home_of(home)
    if not yes:
        typer.confirm(f"delete ratings, factors, secret, key and log in {device.path}?", abort=True)
    deleted, left = device.forget()
    say(f"deleted {', '.join(deleted)} in {device.path}")
    if left:
        say(f"still there, since fedrecplus didn't make it: {', '.join(left)}")


@device_app.command("models")
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


@device_app.command("rollback")
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


def _found(store: Store, item: str, person: int) -> devices.FoundItem:
    """The item that is meant. One that is rated can be named by its id, whatever catalogues say."""
    if item in store.ratings()[person]:
        with contextlib.suppress(UserError):
            return find_item(store, item)
        return devices.FoundItem(item, "", known=True)
    return find_item(store, item)


def _somebody(store: Store, name: str) -> int:
    """A person's number; in a silo it must be said whose."""
    number = _person(store, name)
    if name == OWNER and len(store.persons()) > 1 and not store.ratings()[number]:
        some = ", ".join([other for other in store.persons() if other != OWNER][:3])
        raise UserError(f"this store has {len(store.persons()) - 1} persons", f"say whose, such as --person of {some}")
    return number


def _person(store: Store, name: str) -> int:
    persons = store.persons()
    if name not in persons:
        some = ", ".join(list(persons)[:3])
        raise UserError(f"there is no person {name!r} here", f"persons here are called {some}")
    return persons[name]


def _policy_lines(policy: dict[str, Any]) -> list[str]:
    """The owner's demands, in words."""
    rows = (
        "may show which items are rated" if policy["bare"] else f"have {policy['least_ratio']:g} pseudo items a rating"
    )
    lines = [f"policy: uploads by {', '.join(policy['channels'])}; those that show rows {rows}"]
    lines.append(f"policy: a secure sum is of {policy['least_cohort']} participants or more")
    if policy["pin"]:
        lines.append(f"policy: catalogue {policy['catalogue'] or '(the first that comes)'} and no other")
    return lines


def _catalogue_lines(catalogues: list[dict[str, Any]]) -> list[str]:
    return [f"catalogue {one['digest'][:12]}: {one['items']} items, {one['figures']}" for one in catalogues]


def _facts(store: Store) -> dict[str, Any]:
    import msgspec

    sent = store.sent()
    return {
        "store": str(store.path),
        "scale": str(store.scale),
        "persons": sum(len(ratings) > 0 for ratings in store.ratings().values()),
        "ratings": sum(len(ratings) for ratings in store.ratings().values()),
        "unknown_items": devices.unknown_items(store),
        "paused": devices.is_paused(store),
        "policy": msgspec.to_builtins(devices.load_policy(store)),
        "pinned_identities": len(devices.Identities.load(store).pins),
        "catalogues": devices.known_catalogues(store),
        "models": [{**model, "settings": json.loads(model["settings"])} for model in store.models()],
        "sent": sent,
        "bytes_sent": sum(line["bytes"] for line in sent),
        "bytes_received": sum(line["received"] for line in sent),
        "seconds": sum(line["seconds"] for line in sent),
        "memory": max((line["memory"] for line in sent), default=0),
    }
