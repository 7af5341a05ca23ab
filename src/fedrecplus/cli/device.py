"""``fedrecplus device``: a person's ratings on their own disk."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli import device_status
from fedrecplus.cli.declaring import JsonFile, check_file_place, takes
from fedrecplus.cli.device_home import DEFAULT_HOME, Home, ModelOf, PersonName, home_of, person_of, somebody
from fedrecplus.cli.display import say
from fedrecplus.cli.interrupt import terminated_like_interrupted
from fedrecplus.cli.lists import as_rows, list_options, show_top_list
from fedrecplus.data import Scale
from fedrecplus.deploy import device as devices
from fedrecplus.deploy.device import BATCH, OWNER, Store, find_item
from fedrecplus.errors import UserError
from fedrecplus.files import write_json_to

device_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Your ratings, on your own disk.")


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
    stars: Annotated[float | None, typer.Argument(help="Your rating; leave it out with --remove.")] = None,
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
        number, item_found = person_of(store, person), _found(store, item, person_of(store, person))
        called = f"{item_found.item}, {item_found.title}" if item_found.title else item_found.item
        if stars is None:
            store.unrate(item_found.item, number)
            say(f"took back the rating of {called}")
            return
        store.rate({item_found.item: stars}, number)
    unseen = (
        "" if item_found.known else "; no server has sent its items yet, so nobody knows whether there is such an id"
    )
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


@device_app.command("scale")
def scale_command(
    scale: Annotated[str, typer.Argument(metavar="LOW:HIGH:STEP", help="The scale that the server's items are on.")],
    home: Home = DEFAULT_HOME,
) -> None:
    """Rate on another scale; ratings that are stored keep their values, and must be on it."""
    with Store.open(home_of(home).store) as store:
        store.change_scale(Scale.parse(scale))


@device_app.command("recommend")
@takes(wanted=list_options)
def recommend_command(
    model: ModelOf = None,
    home: Home = DEFAULT_HOME,
    person: PersonName = OWNER,
    json_file: JsonFile = None,
    *,
    wanted: Any,
) -> None:
    """Show what you would like best. Computed here, from your ratings and a public table: nothing is sent."""
    check_file_place(json_file)
    device = home_of(home)
    with Store.open(device.store) as store:
        if model is None and not store.models():
            model = device.first_model
        best = devices.top_list(store, somebody(store, person), wanted, model)
    write_json_to(json_file, as_rows(best))
    show_top_list(best)


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
    from fedrecplus.web import serve_page  # here: it brings what most commands don't need

    device = home_of(home)
    with Store.open(device.store) as store:
        number = person_of(store, person)
    with terminated_like_interrupted():
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


def _found(store: Store, item: str, person: int) -> devices.FoundItem:
    """The item that is meant. One that is rated can be named by its id, whatever catalogues say."""
    if item in store.ratings()[person]:
        with contextlib.suppress(UserError):
            return find_item(store, item)
        return devices.FoundItem(item, "", known=True)
    return find_item(store, item)


device_app.command("status")(device_status.status_command)
device_app.command("sent")(device_status.sent_command)
device_app.command("policy")(device_status.policy_command)
device_app.command("log")(device_status.log_command)
device_app.command("models")(device_status.models_command)
device_app.command("rollback")(device_status.rollback_command)
