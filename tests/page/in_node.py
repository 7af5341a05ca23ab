"""Runs the shipped ``engine.js`` in node, on JSON that Python makes."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

NODE = shutil.which("node")


def run_in_node(folder: Path, script: str, given: Any) -> Any:
    """What a script prints as JSON; it has the engine's exports as ``engine`` and the input as ``given``."""
    if NODE is None:
        pytest.skip("node is not installed")
    shutil.copy(str(files("fedrecplus.web.page") / "site" / "engine.js"), folder / "engine.mjs")
    (folder / "given.json").write_text(json.dumps(given))
    head = (
        "import { readFileSync } from 'node:fs';\nimport * as engine from './engine.mjs';\n"
        "const given = JSON.parse(readFileSync('given.json', 'utf8'));\n"
        "const load = (site) => { const bytes = readFileSync(`${site}/model.bin`);\n"
        "  const facts = JSON.parse(readFileSync(`${site}/model.json`, 'utf8'));\n"
        "  return engine.readModel(facts, new Uint8Array(bytes).buffer); };\n"
        "const print = (value) => process.stdout.write(JSON.stringify(value));\n"
    )
    (folder / "script.mjs").write_text(head + script)
    done = subprocess.run([NODE, "script.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
