"""``fedrecplus server``: the machine that nodes connect to."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.interrupt import terminated_like_interrupted
from fedrecplus.cli.registry import SERVER_HOME
from fedrecplus.deploy.node import read_public_key
from fedrecplus.deploy.operate import (
    CA,
    ServerHome,
    back_up,
    kept_alive,
    look_over,
    renewed_certificate as new_certificate,
    restore,
    rotate,
    serving_processes,
)
from fedrecplus.errors import UserError
from fedrecplus.web.operator_page import page_server
from fedrecplus.web.page import SUMS, write_bundle

server_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The machine that nodes connect to.")


def draw_qr(text: str) -> None:
    """A link as a picture of blocks, if the package for it is there and the terminal takes it."""
    with contextlib.suppress(ImportError, UnicodeEncodeError):
        import segno

        drawn = io.StringIO()
        segno.make(text, error="l").terminal(out=drawn, compact=True, border=2)
        sys.stdout.write(drawn.getvalue())


Names = Annotated[
    list[str] | None,
    typer.Option("--name", help="Name or address that nodes use, beside those so far; repeatable."),
]
Home = Annotated[Path, typer.Option(metavar="DIR", help="Where the server keeps everything.")]


def server_at(home: Path) -> ServerHome:
    """The server that was started there."""
    return ServerHome.load(home.expanduser().absolute())


@server_app.command()
def up(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 9092,
    name: Names = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="No TLS; on loopback only, behind a proxy that has it.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer devices.")] = 1,
    database: Annotated[
        str,
        typer.Option(metavar="URL", help="postgresql+psycopg://USER@HOST/NAME; SQLite in --home where none is given."),
    ] = "",
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the page that invitations open.")] = True,
    home: Home = SERVER_HOME,
) -> None:
    """Start the server. Certificates and tables are made on first use; nodes must be admitted by their keys.

    Several machines with one --database are one server: put a proxy before them, and copy the home's certificates.

    \b
    Examples, on the machine that others know as fed.example.org:
      fedrecplus server up --host 0.0.0.0 --name fed.example.org
      fedrecplus server up --workers 4 --database postgresql+psycopg://fedrec@db/fedrec --insecure
    """
    server = ServerHome(home.expanduser().absolute(), host, port, insecure, (name or [""])[0], database)
    with terminated_like_interrupted(), server.in_use(), server.listening() as listener:
        server.prepare(name or [])
        if page:
            write_bundle(server.page)
        else:
            shutil.rmtree(server.page, ignore_errors=True)
        say(f"listening on {host}:{port}" + ("" if insecure else f"; nodes need {server.certificates / CA}"))
        with kept_alive(serving_processes(server, listener, workers)):
            threading.Event().wait()


@server_app.command()
def renew(
    name: Names = None,
    authority: Annotated[bool, typer.Option("--authority", help="A new authority, too: nodes need new links.")] = False,
    home: Home = SERVER_HOME,
) -> None:
    """Make a new certificate; restart the server then. Nodes go on with the authority they know, unless it is new."""
    folder = server_at(home).certificates
    if authority:
        old = rotate(folder, name or [])
        say(f"a new authority is in {folder}, the old one in {old}; each node needs the new {CA}, or a new invitation")
    else:
        new_certificate(folder, name or [])
        say(f"a new certificate is in {folder}; nodes need nothing")
    say("restart `fedrecplus server up`")


@server_app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as server.tar.gz.")],
    home: Home = SERVER_HOME,
) -> None:
    """Write keys and certificates into one file, and a SQLite database with them; the server may be up.

    PostgreSQL has backups of its own (pg_dump): this file then has the keys alone.
    """
    server = server_at(home)
    back_up(server, file)
    say(f"{file}: keep it as you keep the keys that are in it; run folders are not")
    if not server.database.is_sqlite:
        say("the database is not in it: pg_dump has it")


@server_app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `server backup` wrote.")],
    home: Home = SERVER_HOME,
) -> None:
    """Make a server's home of a backup, on this machine or a new one."""
    restore(file, home.expanduser().absolute())
    say(f"{home} is restored: fedrecplus server up, as before")


@server_app.command()
def status(home: Home = SERVER_HOME) -> None:
    """Say how the server and its last run are. Exits with 1 where something is wrong, and says what to do."""
    findings = look_over(server_at(home))
    for finding in findings:
        say(f"{'ok  ' if finding.good else 'WRONG'} {finding.what}")
        if finding.remedy:
            say(f"      → {finding.remedy}")
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


@server_app.command()
def page(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any.")] = 0,
    home: Home = SERVER_HOME,
) -> None:
    """Show the last run as it goes on a page of this machine: rounds, loss, slow nodes, refusals, budget, checks."""
    web, address = page_server(server_at(home), port)
    say(f"open {address}")
    with terminated_like_interrupted(), web:
        web.serve_forever()


@server_app.command()
def bundle(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go.")],
    address: Annotated[
        str, typer.Option(metavar="URL", help="The server that the page speaks to, such as https://fed.example.org.")
    ],
) -> None:
    """Write the page that invitations open, for another origin than the server's, with hashes to publish.

    \b
    Example:
      fedrecplus server bundle public/ --address https://fed.example.org:9092

    Who sends a page says what it does, so a page from the server itself protects nobody from that server. Put these
    files where somebody else answers for them, and publish the hash in a place of its own: `sha256sum --check
    SHA256SUMS` compares. The page's policy lets it speak to the named server alone.
    """
    digest = write_bundle(out.expanduser(), address)
    say(f"{out}: publish this hash of {SUMS}: {digest}")
    say("links to it: fedrecplus server invite --page https://pages.example.org")


@server_app.command()
def admit(
    key: Annotated[list[Path], typer.Argument(help="Public keys of nodes (node.pub).")],
    name: Annotated[str | None, typer.Option("--name", help="What to call the node in lists; for one key.")] = None,
    instead_of: Annotated[
        int | None,
        typer.Option(metavar="NODE", help="The node has a new key: it keeps its number, strikes and persons."),
    ] = None,
    home: Home = SERVER_HOME,
) -> None:
    """Let nodes connect, by their public keys. An expelled key is let in again."""
    if len(key) > 1 and (name or instead_of is not None):
        raise UserError("--name and --instead-of are of one node", "give one key")
    server = server_at(home)
    for file in key:
        node, new = server.roster.admit(read_public_key(file), name or "", instead_of)
        say(f"{file}: admitted as node {node}" if new else f"{file}: admitted before, as node {node}")


@server_app.command()
def invite(
    name: Annotated[str, typer.Option("--name", help="What to call the node in lists.")] = "",
    hours: Annotated[float, typer.Option(min=0.01, max=24.0 * 90, help="How long the invitation is good for.")] = 48.0,
    address: Annotated[str, typer.Option(metavar="HOST:PORT", help="How nodes reach the server.")] = "",
    page: Annotated[str, typer.Option(metavar="URL", help="Where `server bundle` was put, for a browser's link.")] = "",
    qr: Annotated[bool, typer.Option("--qr/--no-qr", help="Draw the link for a camera, too.")] = True,
    home: Home = SERVER_HOME,
) -> None:
    """Make a link that lets one device in, once: a browser opens it, and `fedrecplus join LINK` takes it."""
    link = server_at(home).invite(name, hours, address)
    opened = f"{page.rstrip('/')}/#code={link.code}" if page else str(link)
    if qr:
        draw_qr(opened)
    say(f"fedrecplus join '{link}'")
    say(f"or open it in a browser: {opened}")
    say(f"good for one device and {hours:g} hours; whoever has it first is let in, so send it to nobody else")


@server_app.command()
def nodes(home: Home = SERVER_HOME) -> None:
    """List the nodes that were admitted."""
    everybody = server_at(home).roster.everybody()
    rows = [[str(node["number"]), node["name"], node["status"], node["key"][:16]] for node in everybody]
    show_table(["node", "name", "status", "key"], rows)


@server_app.command()
def expel(
    node: Annotated[int, typer.Argument(help="The node's number; `server nodes` lists them.")],
    home: Home = SERVER_HOME,
) -> None:
    """Let a node connect no more, until its key is admitted again."""
    server_at(home).roster.expel(node)
    say(f"node {node} is expelled")
