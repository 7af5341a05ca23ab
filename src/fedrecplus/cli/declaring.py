"""What commands declare alike: options that reach them as one argument, and where figures go."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.errors import UserError
from fedrecplus.files import STDOUT, check_writable

Command = Callable[..., None]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="The figures as JSON; -: on standard output, and nothing else there."),
]


def takes(**declared: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command the options that functions declare, after its own.

    ``@takes(wanted=list_options)``: it gets what ``list_options`` makes of its options as the argument ``wanted``.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        more = {name: inspect.signature(function, eval_str=True).parameters for name, function in declared.items()}

        @functools.wraps(command)
        def called(**given: Any) -> None:
            options = {name: {option: given.pop(option) for option in more[name]} for name in declared}
            command(**given, **{name: function(**options[name]) for name, function in declared.items()})

        kept = [parameter for parameter in own.parameters.values() if parameter.name not in declared]
        added = [parameter for parameters in more.values() for parameter in parameters.values()]
        merged = own.replace(parameters=[*kept, *added])
        # what typer reads
        called.__annotations__ = {name: parameter.annotation for name, parameter in merged.parameters.items()}
        called.__signature__ = merged  # type: ignore[attr-defined]
        return called

    return decorate


def names_in(text: str | None) -> list[str]:
    """``A,B,…`` as a list."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def whole_numbers_in(text: str | None, option: str, example: str) -> list[int]:
    """``1,2,…`` as numbers; none where the option isn't given."""
    names = names_in(text)
    if text is not None and not (names and all(name.isdecimal() for name in names)):
        raise UserError(f"{option} {text!r} is not all whole numbers", f"write them with commas: {option} {example}")
    return [int(name) for name in names]


def check_file_place(*places: Path | None) -> None:
    """Find out before a long training that its figures could not be written."""
    for place in places:
        if place is None or place == STDOUT:
            continue
        if place.exists() and not place.is_file():
            kind = "a folder" if place.is_dir() else "a device or a pipe"
            raise UserError(f"{place} is {kind}", "give the name of a file")
        check_writable(place.parent)
