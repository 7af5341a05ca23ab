"""Files for service managers and containers: what they start exists. There is no docker daemon here to build them."""

from __future__ import annotations

import configparser
import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from fedrecplus.cli.main import app

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "operations" / "systemd").glob("*"))
INSTRUCTIONS = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "ENV", "EXPOSE", "ENTRYPOINT", "CMD"}


def parsed(words: list[str]) -> str:
    """Parse a command line of `fedrecplus` without running it; returns the command's name."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("fedrecplus", list(words))
    while hasattr(command, "get_command"):
        arguments = [*getattr(context, "_protected_args", []), *context.args]
        name, command, rest = command.resolve_command(context, arguments)
        context = command.make_context(name, rest, parent=context)
    return str(context.command_path)


def unit(path: Path) -> configparser.ConfigParser:
    reader = configparser.ConfigParser(strict=False, interpolation=None)
    reader.optionxform = str  # type: ignore[assignment, method-assign]
    reader.read(path)
    return reader


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists(path: Path) -> None:
    reader = unit(path)
    assert reader["Unit"]["Description"]
    if path.suffix == ".timer":
        assert path.with_suffix(".service") in UNITS
        assert reader["Timer"]["OnCalendar"]
        return
    words = shlex.split(reader["Service"]["ExecStart"])
    assert words[0].endswith("/bin/fedrecplus")
    assert parsed(words[1:]).startswith("fedrecplus ")
    assert reader["Service"]["NoNewPrivileges"] == "yes"


def test_a_mistaken_command_line_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["server", "up", "--hots", "x"])


def test_the_image_is_made_of_what_there_is_and_runs_as_nobody_special() -> None:
    text = (ROOT / "operations" / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert {line.split()[0] for line in lines} <= INSTRUCTIONS
    assert lines[0].startswith("FROM python:3.11")
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    assert all((ROOT / name).exists() for name in copied)
    assert any(line.startswith("USER ") and line != "USER root" for line in lines)
    command = json.loads(next(line for line in lines if line.startswith("CMD")).removeprefix("CMD "))
    assert parsed(command) == "fedrecplus server up"


def test_the_image_takes_wheels_of_known_hashes_alone_and_all_that_is_needed() -> None:
    read = runpy.run_path(str(ROOT / "operations" / "locked.py"))
    text = (ROOT / "operations" / "requirements.txt").read_text()
    entries = [entry.split() for entry in re.sub(r"^#.*\n", "", text).replace("\\\n", " ").splitlines()]
    assert all(len(entry) > 1 for entry in entries)
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", digest) for _, *digests in entries for digest in digests)
    versions = dict(entry[0].split("==") for entry in entries)
    assert versions.keys() >= read["required"]() | set(read["BUILD"])
    pinned = read["pinned"]()
    assert {name: pinned.get(name, chosen) for name, chosen in versions.items()} == versions, "as in constraints.txt"
    installs = re.findall(r"pip install ([^&\\\n]*)", (ROOT / "operations" / "Dockerfile").read_text())
    assert all("--require-hashes" in words or "--no-deps" in words for words in installs)


def test_compose_starts_a_server_two_nodes_and_prometheus() -> None:
    content = yaml.safe_load((ROOT / "operations" / "compose.yaml").read_text())
    services, volumes = content["services"], set(content["volumes"])
    assert set(services) == {"server", "anna", "ben", "node-exporter", "prometheus"}
    for service in services.values():
        if "build" in service:
            assert parsed([str(word) for word in service["command"]]).startswith("fedrecplus ")
            assert (ROOT / "operations" / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        used = {volume.partition(":")[0] for volume in service["volumes"]}
        assert used <= volumes | {"./prometheus.yml"}
    files = {word for name in ("anna", "ben") for word in services[name]["command"] if str(word).endswith(".prom")}
    assert len(files) == 2, "each node has a file of its own, in the folder that node_exporter reads"
    assert all(name.startswith("/metrics/") for name in files)
    assert any(word.endswith("textfile.directory=/metrics") for word in services["node-exporter"]["command"])
    job, nodes = yaml.safe_load((ROOT / "operations" / "prometheus.yml").read_text())["scrape_configs"]
    assert nodes["static_configs"][0]["targets"] == ["node-exporter:9100"]
    assert re.fullmatch(r"/server/server/metrics\.token", job["authorization"]["credentials_file"])
    assert job["scheme"] == "https"
