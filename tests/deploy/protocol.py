"""What a protocol's number stands for: the fields that travel, and every setting's default. Written down beside it.

``python -m tests.deploy.protocol`` writes it anew, which goes with another ``PROTOCOL``.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, from_tables, to_tables
from fedrecplus.deploy.wire.packet import PROTOCOL
from fedrecplus.parts import KINDS, built_in
from fedrecplus.protocol import ErrorReport, PublicItems, Upload

WRITTEN = Path(__file__).with_name("protocol.json")


def spoken() -> dict[str, Any]:
    """As it is in the code."""
    carried = {kind.__name__: [field.name for field in fields(kind)] for kind in (PublicItems, Upload, ErrorReport)}
    general = to_tables(Config())
    rules = {
        f"{kind.kind}.{rule}": to_tables(from_tables({kind.kind: {"rule": rule}}))[kind.kind]
        for kind in KINDS.values() if kind.kind in general
        for rule in built_in(kind)
    }  # fmt: skip
    others = {name: value for name, value in general.items() if name not in KINDS}
    return {"protocol": PROTOCOL, "carried": carried, "rules": rules, "settings": others}


if __name__ == "__main__":
    WRITTEN.write_text(json.dumps(spoken(), indent=1) + "\n")
