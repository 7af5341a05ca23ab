"""``fedrecplus page``."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.options import Allow
from fedrecplus.errors import UserError


def page_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the site goes. Default: RUN/page.")] = None,
    besides: Annotated[
        list[Path] | None,
        typer.Option(
            "--beside", metavar="RUN", help="A run of another model, for its presets in the panel; may be repeated."
        ),
    ] = None,
    bits: Annotated[
        str, typer.Option(metavar="8|16", help="Of a number of the item table: small, or very exact.")
    ] = "8",
    show: Annotated[bool, typer.Option("--open", help="Serve it on 127.0.0.1 and open a browser.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="For --open; browsers keep ratings by port. 0: a free one.")
    ] = 8017,
    allow: Allow = None,
) -> None:
    """Make a page on which a person rates, gets a list at once, and sees what would leave the device.

    \b
    Examples:
      fedrecplus page runs/ml-100k-fedrec+-fold0-seed0 --open
      fedrecplus page runs/ml-100k-fedrec+-fold0-seed0 --out public/

    The site is a folder for any file server. Everything is computed in the browser; after loading it asks for
    nothing more. It has the run's public model and nothing of any client.
    """
    from fedrecplus.web import FolderPages, PageServer
    from fedrecplus.web.page import build_site  # here: it brings what most commands don't need

    if bits not in ("8", "16"):
        raise UserError(f"--bits {bits}: numbers of the page have 8 or 16 bits", "give 8 or 16")
    site = build_site(run, out or run / "page", int(bits), allow or (), besides or ())
    cost = site.cost
    say(
        f"{site.folder}: {site.compressed / 1000:.0f} KB compressed; {bits}-bit rows change a predicted rating by "
        f"{cost['mean_change']:.3f} on average, {cost['largest_change']:.3f} at most"
    )
    for line in site.gives_away:
        say(line)
    if not show:
        say("open it by the same command and --open, or put the folder on any file server")
        return
    with contextlib.suppress(KeyboardInterrupt), PageServer(FolderPages(site.folder), "", port) as server:
        say(f"open {server.address} (Ctrl-C ends it)")
        webbrowser.open(server.address)
        server.serve_forever()
