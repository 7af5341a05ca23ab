"""``fedrecplus server``: the machine that nodes connect to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.foreground import keep_in_foreground
from fedrecplus.deploy.process import CA, ServerHome, Supervised
from fedrecplus.errors import UserError

server_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The machine that nodes connect to.")

DEFAULT_HOME = Path("~/.fedrecplus/server")
Home = Annotated[
    Path, typer.Option(metavar="DIR", help="Where the server keeps everything. Default: ~/.fedrecplus/server.")
]


@server_app.command()
def up(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 9092,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="Name or address that nodes use; may be repeated.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="No TLS and no keys; on loopback only.")] = False,
    home: Home = DEFAULT_HOME,
) -> None:
    """Start the server and keep it alive. Certificates are made on first use; nodes must be admitted by their keys.

    \b
    Example, on the machine that others know as fed.example.org:
      fedrecplus server up --host 0.0.0.0 --name fed.example.org
    """
    server = ServerHome(home.expanduser().absolute(), host, port, insecure)
    with server.only_one():
        server.check_port()
        server.prepare(name or [])
        say(f"listening on {host}:{port}" + ("" if insecure else f"; nodes need {server.certificates / CA}"))
        keep_in_foreground(Supervised(server.command(), server.environment(), None, say))


@server_app.command()
def admit(
    key: Annotated[list[Path], typer.Argument(help="Public keys of nodes (node.pub).")],
    name: Annotated[str | None, typer.Option("--name", help="What to call the node in lists; for one key.")] = None,
    instead_of: Annotated[
        int | None,
        typer.Option(metavar="NODE", help="The node has a new key: it keeps its number, strikes and persons."),
    ] = None,
    home: Home = DEFAULT_HOME,
) -> None:
    """Let nodes connect, by their public keys. The server must be up. An expelled key is let in again."""
    if len(key) > 1 and (name or instead_of is not None):
        raise UserError("--name and --instead-of are of one node", "give one key")
    server = ServerHome.load(home.expanduser().absolute())
    for file in key:
        node, new = server.admit(file, name or "", instead_of)
        say(f"{file}: admitted as node {node}" if new else f"{file}: is node {node} and may connect already")


@server_app.command()
def nodes(home: Home = DEFAULT_HOME) -> None:
    """List the nodes that were admitted. The server must be up."""
    everybody = ServerHome.load(home.expanduser().absolute()).nodes()
    columns = ("node-id", "name", "status", "online-at", "offline-at")
    show_table(
        ["node", "name", "status", "online since", "offline since"],
        [[node[column] for column in columns] for node in everybody],
    )


@server_app.command()
def expel(
    node: Annotated[int, typer.Argument(help="The node's number; `server nodes` lists them.")],
    home: Home = DEFAULT_HOME,
) -> None:
    """Let a node connect no more, until its key is admitted again. The server must be up."""
    ServerHome.load(home.expanduser().absolute()).expel(node)
    say(f"node {node} is expelled")
