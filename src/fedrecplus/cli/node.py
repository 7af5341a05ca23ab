"""``fedrecplus node``: a device or a silo that takes part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from fedrecplus.cli.device import DEFAULT_HOME, Home, home_of
from fedrecplus.cli.display import say
from fedrecplus.cli.foreground import keep_in_foreground
from fedrecplus.deploy.device import Store, load_policy, own_key, pin_identities, save_policy
from fedrecplus.deploy.process import Supervised
from fedrecplus.deploy.wire import read_identities
from fedrecplus.errors import UserError

node_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="A device or a silo that takes part.")

_HINT = (
    "if it isn't let in: the operator must have admitted this node's key (`node key` shows it, `server admit` takes "
    "it), --ca must be that server's, and a node that was killed must wait some 20 s"
)


@node_app.command()
def key(home: Home = DEFAULT_HOME) -> None:
    """Make this node's key if it has none, and show the public part, which the server's operator needs."""
    public = home_of(home).make_key()
    say(public.read_text(encoding="utf-8").strip())
    say(f"on the server: fedrecplus server admit {public.name}   (a copy of {public})")


@node_app.command()
def identity(home: Home = DEFAULT_HOME) -> None:
    """Show the public key that this node signs its part of secure sums with; made on first use.

    Hand it to the other nodes' owners by a way that the server doesn't control. A file with everybody's lines is what
    `node join --pin` and `deploy run --identities` take.
    """
    with Store.open(home_of(home).store) as store:
        say(own_key(store).public_key().public_bytes_raw().hex())


@node_app.command()
def join(
    address: Annotated[str, typer.Argument(help="The server as HOST:PORT.")],
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="The server's ca.crt.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="No TLS; to a server on this machine only.")] = False,
    poll: Annotated[float, typer.Option(min=0.05, max=60.0, help="Seconds between looks for work.")] = 1.0,
    share_error: Annotated[
        bool,
        typer.Option("--share-error", help="Tell the server each round how well the model fits this node's ratings."),
    ] = False,
    allow_rule: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-rule",
            metavar="PACKAGE.RULE",
            help="A rule from outside fedrecplus that the server's settings may name; may be repeated.",
        ),
    ] = None,
    allow_bare: Annotated[
        bool,
        typer.Option(
            "--allow-bare", help="Take part although the server would see which items you rated (fedmf, say)."
        ),
    ] = False,
    pin: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Identities of all nodes, this one included; secure sums with no others."),
    ] = None,
    home: Home = DEFAULT_HOME,
) -> None:
    """Take part in a server's rounds, and stay: the node is started again whenever it ends."""
    device = home_of(home)
    if not device.store.exists():
        raise UserError(f"{device.store}: no store of ratings here", "make one with `fedrecplus device init`")
    command = device.command(address, ca=ca, insecure=insecure)
    keys = read_identities(pin) if pin else None
    with Store.open(device.store) as store:
        own_key(store)
        if keys is not None:
            pin_identities(store, keys)
        store.allow_rules(allow_rule or [])
        if allow_bare:
            with store.changing():
                save_policy(store, msgspec.structs.replace(load_policy(store), bare=True))
    say(f"joining {address} with the ratings in {device.store}")
    environment = device.environment(poll=poll, share_error=share_error)
    keep_in_foreground(Supervised(command, environment, None, say, hint=_HINT))
