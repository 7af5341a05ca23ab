"""``fedrecplus serve``."""

from __future__ import annotations

import contextlib
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.interrupt import terminated_like_interrupted
from fedrecplus.cli.options import Allow
from fedrecplus.errors import UserError
from fedrecplus.web import LOOPBACK, is_everywhere
from fedrecplus.web.service import Limits

_NEEDED = ("fastapi", "uvicorn", "prometheus_client")
_DEFAULT = Limits()


def serve_command(
    place: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a finished run, or a registry of published models.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8000,
    name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name that requests may be for; may be repeated.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this origin ask, https://example.org; may be repeated."),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.0, help="Requests a second that one peer may make; 0 for no bound.")
    ] = _DEFAULT.rate,
    largest_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Of a request.")] = _DEFAULT.body,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Believe X-Forwarded-For of a proxy on this machine.")
    ] = False,
    poll: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks at the registry.")] = 1.0,
    allow: Allow = None,
) -> None:
    """Serve a model: its public table, its items, and lists for clients that can't compute.

    \b
    Examples:
      fedrecplus serve runs/ml-100k-fedrec+-fold0-seed0
      fedrecplus serve runs/registry --port 8080
      fedrecplus serve runs/registry --host 0.0.0.0 --name films.example.org

    On a registry, what `fedrecplus publish` and `fedrecplus rollback` make current is taken within a second; requests
    that run finish with the model they began with. It wants the extra `serve`, and a proxy in front for TLS.
    """
    missing = [module for module in _NEEDED if importlib.util.find_spec(module) is None]
    if missing:
        raise UserError(f"serving needs {', '.join(missing)}", "pip install 'fedrecplus[serve]'")
    if is_everywhere(host) and not name:
        raise UserError(f"on {host} the service needs a name that requests are for", "give --name films.example.org")
    from fedrecplus.web import service  # here: it brings what most commands don't need

    limits = replace(_DEFAULT, body=largest_body, rate=rate, burst=max(2 * rate, 1.0))
    names = [*LOOPBACK, *(() if is_everywhere(host) else (host,)), *(name or ())]
    options = service.ServiceOptions(names, allow_origin or (), limits, poll)
    source = service.ModelSource(place, allow or ())
    opened = service.listen(host, port)
    service.log_to_stderr()
    shown = f"[{host}]" if ":" in host else host
    say(
        f"http://{shown}:{opened.getsockname()[1]} serves {place}, digest {source.current.digest[:12]} (Ctrl-C ends it)"
    )
    for line in source.current.figures.get("gives_away") or ():
        say(line)
    with contextlib.suppress(KeyboardInterrupt), terminated_like_interrupted():  # requests that run are finished first
        service.server_of(source, options, behind_proxy=behind_proxy).run(sockets=[opened])
    say("stopped")
