"""``fedrecplus node``: a device or a silo that takes part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from fedrecplus.cli.declaring import takes
from fedrecplus.cli.device_home import DEFAULT_HOME, Home, home_of
from fedrecplus.cli.display import say
from fedrecplus.deploy.device import (
    CHANNELS,
    Store,
    agree,
    known_tasks,
    load_policy,
    own_key,
    pin_identities,
    save_policy,
    task_named,
    withdraw,
)
from fedrecplus.deploy.node import Node, NodeHome, NodeMetrics, join as run, prepare
from fedrecplus.deploy.wire import read_identities
from fedrecplus.terminal import log_to_stderr

node_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="A device or a silo that takes part.")


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
def consent(
    task: Annotated[str, typer.Argument(help="Digest of a task, or how it begins; none: list them all.")] = "",
    withdrawn: Annotated[bool, typer.Option("--withdraw", help="Take part in it no more.")] = False,
    home: Home = DEFAULT_HOME,
) -> None:
    """Show in plain words what servers ask this device to compute, and agree to one of them.

    A device takes part in tasks that were agreed to, and refuses whatever is none of theirs. Joining by a link agrees
    to the task that the link names.
    """
    with Store.open(home_of(home).store) as store:
        if task:
            (withdraw if withdrawn else agree)(store, task_named(store, task))
        show_tasks(store)


def show_tasks(store: Store, *, any_task: bool = False) -> None:
    """All tasks that are known here, in plain words."""
    tasks = known_tasks(store)
    for known in tasks:
        for line in known.task.words(store.allowed_rules):
            say(line)
        say("  you agreed to it" if known.agreed else "  not agreed to: it is refused")
    if not tasks and not any_task and not load_policy(store).any_task:
        say("no task is agreed to yet: what a server asks first is refused, and `fedrecplus node consent` shows it")


_ANSWER_STEP = 1.0
"""seconds: answers go at whole multiples of it after their questions"""
Address = Annotated[str, typer.Argument(help="The server as HOST:PORT.")]
Ca = Annotated[Path | None, typer.Option(metavar="FILE", help="The server's ca.crt.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="No TLS; to a server on this machine only.")]
AllowClear = Annotated[
    bool,
    typer.Option("--allow-clear", help="Take part although the server would see each upload: rows and changes."),
]
AnyTask = Annotated[
    bool,
    typer.Option("--allow-any-task", help="Agree to whatever the server asks, now and later; else see `node consent`."),
]
Metrics = Annotated[
    Path | None,
    typer.Option(metavar="FILE.prom", help="Keep figures of this node for Prometheus in a file; see Deployment."),
]


@dataclass(frozen=True)
class TakingPart:
    """How a node takes part: through which connection, with what the owner says beside."""

    device: NodeHome
    ca: Path | None
    options: dict[str, Any]

    def node(self, address: str, longest_pause: float) -> Node:
        """The node, ready to connect, with its log in the terminal."""
        more: dict[str, Any] = {"longest_pause": longest_pause, "answer_step": _ANSWER_STEP}
        node = prepare(self.device.path, address, self.ca, **self.options, **more)
        log_to_stderr()
        return node


def taking_part(
    ca: Ca = None,
    insecure: Insecure = False,
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
    allow_clear: AllowClear = False,
    allow_any_task: AnyTask = False,
    pin: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Identities of all nodes, this one included; secure sums with no others."),
    ] = None,
    metrics: Metrics = None,
    home: Home = DEFAULT_HOME,
) -> TakingPart:
    """Keep in the store what the owner says on the command line."""
    device, keys = home_of(home), read_identities(pin) if pin else None
    with Store.open(device.store) as store:
        own_key(store)
        if keys is not None:
            pin_identities(store, keys)
        store.allow_rules(allow_rule or [])
        allow_weaker(store, bare=allow_bare, clear=allow_clear, any_task=allow_any_task)
    device.make_key()
    figures = None if metrics is None else NodeMetrics(metrics, device.store)
    return TakingPart(device, ca, {"insecure": insecure, "share_error": share_error, "metrics": figures})


@node_app.command()
@takes(part=taking_part)
def join(
    address: Address,
    poll: Annotated[
        float, typer.Option(min=0.05, max=600.0, help="Longest pause in seconds between looks for work, when idle.")
    ] = 30.0,
    *,
    part: TakingPart,
) -> None:
    """Take part in a server's rounds, and stay: a server that is away is waited for."""
    stay(part, address, poll)


def stay(part: TakingPart, address: str, poll: float = 30.0) -> None:
    """Answer the server until somebody stops this."""
    node = part.node(address, poll)
    with Store.open(part.device.store) as store:
        show_tasks(store)
    say(f"joining {address} with the ratings in {part.device.store}")
    run(part.device.path, node)


@node_app.command()
@takes(part=taking_part)
def once(
    address: Address,
    wait: Annotated[float, typer.Option(min=0.0, max=3600.0, help="Seconds to wait for the server to ask.")] = 10.0,
    back_in: Annotated[
        float | None,
        typer.Option(min=10.0, max=1800.0, help="Seconds to the next visit: what is asked meanwhile waits for it."),
    ] = None,
    *,
    part: TakingPart,
) -> None:
    """Connect, take part if asked, and leave; for cron, systemd timers and phones.

    The exit code is 1 if the server was away, or didn't let this node in.

    \b
    Example, every quarter of an hour:
      fedrecplus node once fed.example.org:9092 --ca ca.crt --back-in 900
    """
    node = part.node(address, longest_pause=5.0)
    run(part.device.path, node, wait=wait, back_in=back_in)
    say(f"answered {node.answered} messages")
    if node.in_trouble:
        raise typer.Exit(1)


def allow_weaker(store: Store, *, bare: bool, clear: bool, any_task: bool = False) -> None:
    """Keep the owner's word that less protection will do; without it nothing changes."""
    words: dict[str, Any] = {"bare": True} if bare else {}
    if clear:
        words["channels"] = CHANNELS
    if any_task:
        words["any_task"] = True
    with store.changing():
        save_policy(store, msgspec.structs.replace(load_policy(store), **words))
