"""What a browser knows of settings: every built-in rule's, as Python has them, for ``page/src/wire/settings.json``.

``python -m fedrecplus.web.page.settings > page/src/wire/settings.json``; a test says when that file is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from fedrecplus.config import SECTIONS, Config, GeneralSettings, from_tables
from fedrecplus.deploy.wire import PROTOCOL
from fedrecplus.parts import KINDS, built_in
from fedrecplus.settings import Setting, Settings, constants_of, settings_of


def known_settings() -> dict[str, Any]:
    """Settings of every section and rule, with defaults and ranges, and the protocol's number."""
    rules = {
        choice.kind: {rule: _of_rule(choice.kind, rule) for rule in sorted(built_in(KINDS[choice.kind]))}
        for choice in Config().choices
    }
    sections = {name: _described(owner, {}) for name, owner in SECTIONS.items()}
    return {"protocol": PROTOCOL, "general": _described(GeneralSettings, {}), "sections": sections, "rules": rules}


def _of_rule(kind: str, rule: str) -> dict[str, Any]:
    """A rule's, with the defaults that it has where a text tells its name alone."""
    chosen = getattr(from_tables({kind: {"rule": rule}}), kind)
    return _described(type(chosen.settings), chosen.values)


def _described(owner: type[Settings], defaults: Mapping[str, Any]) -> dict[str, Any]:
    constants = {name: value for name, value in constants_of(owner).items() if isinstance(value, int | float | str)}
    return {
        "settings": {one.name: _facts(one, defaults.get(one.name, one.default)) for one in settings_of(owner)},
        "constants": constants,
    }


def _facts(setting: Setting, default: Any) -> dict[str, Any]:
    kind = "whole" if setting.whole else "number" if setting.low is not None else "text"
    facts = {"kind": "flag" if isinstance(default, bool) else kind, "default": default}
    limits = {"low": setting.low, "high": setting.high, "values": list(setting.values)}
    return {**facts, **{name: value for name, value in limits.items() if value not in (None, [])}}


if __name__ == "__main__":
    json.dump(known_settings(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
