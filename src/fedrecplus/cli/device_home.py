"""What commands on a device share: where it keeps everything, and whose ratings are meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.deploy.device import OWNER, Store
from fedrecplus.deploy.node import NodeHome
from fedrecplus.errors import UserError

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


def somebody(store: Store, name: str) -> int:
    """A person's number; in a silo it must be said whose."""
    number = person_of(store, name)
    if name == OWNER and len(store.persons()) > 1 and not store.ratings()[number]:
        names = ", ".join([other for other in store.persons() if other != OWNER][:3])
        raise UserError(f"this store has {len(store.persons()) - 1} persons", f"say whose, such as --person of {names}")
    return number


def person_of(store: Store, name: str) -> int:
    """A person's number, by name."""
    persons = store.persons()
    if name not in persons:
        names = ", ".join(list(persons)[:3])
        raise UserError(f"there is no person {name!r} here", f"persons here are called {names}")
    return persons[name]
