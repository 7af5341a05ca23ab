"""The compose file for a try: what it names is there, and its very commands make a cluster, as processes here."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.waiting import GIVE_UP, wait_until

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples/cluster/compose.yaml"
SMALL = "synthetic:clients=200,items=60,ratings_per_client=15"
COMMANDS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def shown_commands() -> list[tuple[dict[str, str], str, list[str]]]:
    """What the file's head says to run in containers: environment, service and command."""
    text = re.sub(r" \\\n#\s*", " ", FILE.read_text())
    found = []
    for line in re.findall(r"^#\s+docker compose -f \S+ exec (.*)$", text, re.MULTILINE):
        words, environment = shlex.split(line), {}
        while words[0] == "-e":
            name, value = words[1].split("=", 1)
            environment[name], words = value, words[2:]
        found.append((environment, words[0], words[1:]))
    return found


def test_it_builds_from_files_that_are_there_with_an_extra_that_is_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"head", "worker"}
    for service in services.values():
        context = (FILE.parent / service["build"]["context"]).resolve()
        assert context == ROOT
        lines = (context / service["build"]["dockerfile"]).read_text().splitlines()
        sources = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
        assert sources
        assert all((context / name).exists() for name in sources)
        assert any("'.[ray]'" in line for line in lines)
        assert service["volumes"] == ["shards:/shards"]  # the same path everywhere
    assert "\nray = [" in (ROOT / "pyproject.toml").read_text()
    assert "shards" in compose["volumes"]
    assert services["head"]["hostname"] == "head"
    assert services["worker"]["depends_on"] == ["head"]


def test_what_it_says_to_run_are_commands_of_services_that_there_are(compose: dict[str, Any]) -> None:
    shown = shown_commands()
    assert [command[:2] for _, _, command in shown] == [
        ["fedrecplus", "data"],
        ["fedrecplus", "train"],
        ["fedrecplus", "cluster"],
    ]
    assert {service for _, service, _ in shown} <= set(compose["services"])


@pytest.fixture
def machines(compose: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """The services' own commands, each as a machine with one core; gives the head's address and their environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # Ray's sockets need short paths
    environment = {**os.environ, "RAY_TMPDIR": place, "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), **compose["services"]["head"]["environment"]}
    own = ["--num-cpus=1", "--object-store-memory=100000000"]
    running: list[subprocess.Popen[str]] = []
    try:
        for name in ("head", "worker"):
            words = shlex.split(of_here(compose["services"][name]["command"], address))
            with (Path(place) / f"{name}.log").open("w") as log:
                process = subprocess.Popen(
                    [*words, *own], env=environment, stdout=log, stderr=log, text=True, start_new_session=True
                )
            running.append(process)
            wait_for_machines(len(running), address, environment)
        yield address, environment
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)  # what has not ended then is killed
            with_group_gone(process.pid)
            process.wait(GIVE_UP)
        shutil.rmtree(place, ignore_errors=True)


def with_group_gone(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def of_here(text: str, address: str) -> str:
    """A command with this head's address in place of the containers'."""
    return text.replace("head:6379", address).replace("--port=6379", f"--port={address.rpartition(':')[2]}")


def wait_for_machines(count: int, address: str, environment: dict[str, str]) -> None:
    """Until so many machines have joined."""
    ask = f"import ray; ray.init(address={address!r}, logging_level='ERROR'); "
    ask += "print(sum(node['Alive'] for node in ray.nodes()))"

    def joined() -> bool:
        done = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True)
        return done.stdout.strip() == str(count)

    wait_until(joined)


@pytest.mark.slow
def test_its_commands_start_two_machines_and_train_on_them(
    machines: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, environment = machines
    said = []
    for variables, _, command in shown_commands():
        words = [of_here(word, address).replace("/shards", str(tmp_path)) for word in command]
        words = [SMALL if word == "ml-100k" else word for word in words]
        own = {name: of_here(value, address) for name, value in variables.items()}
        short = ["--set", "server.rounds=2"] if words[1] == "train" else []
        done = subprocess.run(
            [sys.executable, "-m", *words, *short],
            env={**environment, **own},
            capture_output=True,
            text=True,
            timeout=GIVE_UP,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["rounds"] == 2
    assert len(re.findall(r"^\S+ +1 +0 ", said[-1], re.MULTILINE)) == 2  # machines, each with one core and no card
