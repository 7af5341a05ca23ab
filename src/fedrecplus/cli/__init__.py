"""The commands: parse, call, print."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.cli.main import run as run

lazily(__name__)
