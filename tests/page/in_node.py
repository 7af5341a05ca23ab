"""Runs the shipped ``engine.js`` in node, on JSON that Python makes."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import GIVE_UP

NODE = shutil.which("node")
ROUNDS = """
const model = load(given.site);
const leaves = JSON.parse(readFileSync(`${given.site}/leaves.json`, 'utf8'));
const bytes = new Uint8Array(readFileSync(`${given.site}/leaves.bin`)).buffer;
const rounds = (show) => given.people.map(([items, ratings]) => given.presets.map((name) => {
  const preset = leaves.presets.find((each) => each.name === name);
  const V = engine.tableOf(preset, leaves, bytes, model);
  const message = engine.broadcastOf(preset.round, V, model.known, preset);
  const rated = [Int32Array.from(items), Float64Array.from(ratings)];
  const device = engine.deviceOf(...rated, leaves.step, BigInt(given.secret), message, preset);
  return show(engine.clientRound(message, device, preset), message, preset);
}));
"""
"""JavaScript that runs the client's half of a round for each of some people, under each of some presets"""


def run_in_node(folder: Path, script: str, given: Any) -> Any:
    """What a script prints as JSON; it has both files' exports as ``engine`` and ``device``, the input as ``given``.

    ``asked`` reads the bytes of a server's request, ``orRefusal`` gives what a function does, or why it refuses.
    """
    if NODE is None:
        pytest.skip("node is not installed")
    for name in ("engine", "device"):
        shutil.copy(str(files("fedrecplus.web.page") / "site" / f"{name}.js"), folder / f"{name}.mjs")
    (folder / "given.json").write_text(json.dumps(given))
    head = (
        "import { readFileSync } from 'node:fs';\nimport * as engine from './engine.mjs';\n"
        "import * as device from './device.mjs';\n"
        "const given = JSON.parse(readFileSync('given.json', 'utf8'));\n"
        "const load = (site) => { const bytes = readFileSync(`${site}/model.bin`);\n"
        "  const facts = JSON.parse(readFileSync(`${site}/model.json`, 'utf8'));\n"
        "  return engine.readModel(facts, new Uint8Array(bytes).buffer); };\n"
        "const print = (value) => process.stdout.write(JSON.stringify(value));\n"
        "const bytesOf = (content) => new Uint8Array(Buffer.from(content, 'base64'));\n"
        "const asked = (content) => device.requestOf(device.packetOf(bytesOf(content)), true);\n"
        "const orRefusal = (judge) => { try { return judge(); } catch (refused) { return refused.kind; } };\n"
    )
    (folder / "script.mjs").write_text(head + script)
    done = subprocess.run([NODE, "script.mjs"], cwd=folder, capture_output=True, text=True, timeout=GIVE_UP)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
