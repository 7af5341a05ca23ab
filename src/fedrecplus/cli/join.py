"""``fedrecplus join``: a device takes part, by one line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.device_home import DEFAULT_HOME, Home, home_of
from fedrecplus.cli.display import say
from fedrecplus.cli.node import AllowClear, AnyTask, Metrics, show_tasks, stay as stay_on, taking_part
from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store, agree, import_own, remove_store
from fedrecplus.deploy.node import Invitation, NodeHome, fetch_model, fetch_task, join_by
from fedrecplus.errors import UserError

_SCALE = "1:5:1"
_CLAIM = (
    "what is claimed: your ratings stay here, and the server sees sums of many people's uploads (each upload with "
    "--allow-clear). A server that invents the other people could take yours out of a sum; against that help only "
    "identities that you pin (`node join --pin`), somebody else who vouches for them, or noise of your own device"
)


def join_command(
    link: Annotated[str, typer.Argument(metavar="LINK", help="The invitation, in quotes for its &; - reads it.")],
    ratings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your ratings to begin with: lines of item and rating.")
    ] = None,
    name: Annotated[str, typer.Option(help="What the operator shall see, if the invitation names nobody.")] = "",
    scale: Annotated[
        str | None, typer.Option(metavar="LOW:HIGH:STEP", help="The scale you rate on. Default: 1:5:1.")
    ] = None,
    allow_clear: AllowClear = False,
    allow_any_task: AnyTask = False,
    stay: Annotated[bool, typer.Option("--stay/--leave", help="Take part from now on, or only get ready.")] = True,
    metrics: Metrics = None,
    home: Home = DEFAULT_HOME,
) -> None:
    """Take part in a server's rounds: make a store and a key, register, fetch the model, and stay.

    \b
    Example:
      fedrecplus join 'https://fed.example.org:9092/#code=…&authority=…' --ratings mine.csv
    """
    invitation = Invitation.parse(sys.stdin.readline() if link == "-" else link)  # others see a command line
    device, elsewhere = home_of(home), "" if home == DEFAULT_HOME else f" --home {home}"
    _prepare_store(device, scale, ratings)
    device.make_key()
    number, known_as = join_by(invitation, device.path, name)
    say(f"you are node {number}" + (f", {known_as}" if known_as else ""))
    say(_CLAIM)
    with Store.open(device.store) as store:
        task = fetch_task(invitation, device.path)
        if task is not None:
            agree(store, task)
        show_tasks(store, any_task=allow_any_task)
    model = fetch_model(invitation, device.path)
    if model is not None:
        say(f"a model is here: fedrecplus device recommend --model {model}{elsewhere}")
    if stay:
        part = taking_part(
            device.path / "ca.crt", allow_clear=allow_clear, allow_any_task=allow_any_task, metrics=metrics, home=home
        )
        stay_on(part, invitation.address)
    else:
        word = " --allow-clear" * allow_clear + " --allow-any-task" * allow_any_task
        say(f"take part with: fedrecplus node join {invitation.address} --ca {device.path / 'ca.crt'}{word}{elsewhere}")


def _prepare_store(device: NodeHome, scale: str | None, ratings: Path | None) -> None:
    """A store on this scale, with these ratings; none is left where the ratings can't be taken."""
    new = not device.store.exists()
    if new:
        Store.create(device.store, Scale.parse(scale or _SCALE))
    try:
        with Store.open(device.store) as store:
            if scale is not None and not new:
                store.change_scale(Scale.parse(scale))
            if ratings is not None:
                say(f"{import_own(store, ratings)} ratings are stored in {device.store}")
    except UserError:
        if new:
            remove_store(device.store)
        raise
