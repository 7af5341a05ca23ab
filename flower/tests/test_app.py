"""The app in Flower's own simulation and deployment, beside a simulation of fedrecplus without Flower."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fedrec_silos.server import config_of

import fedrecplus as fr
from fedrecplus.config import assign, preset
from fedrecplus.data import load
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.training.model_files import SharedModel

APP = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PEOPLE = "synthetic:clients=400,items=60,ratings_per_client=15"
PATIENCE = 300.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of Flower's commands, with a home of its own; what they left running is ended."""
    folder = tmp_path_factory.mktemp("flower")
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_HOME": str(folder)}
    env = {**os.environ, **quiet, "PATH": f"{BIN}:{os.environ['PATH']}"}
    yield env
    for process in Path("/proc").glob("[0-9]*"):  # `flwr run` leaves a SuperLink behind
        try:
            if f"FLWR_HOME={folder}".encode() in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue


def run(env: dict[str, str], link: str, **settings: object) -> str:
    """`flwr run` with these settings; what it printed."""
    given = " ".join(f"{name.replace('_', '-')}={json.dumps(value)}" for name, value in settings.items())
    command = [str(BIN / "flwr"), "run", str(APP), link, "--stream", "--run-config", given]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.stdout + done.stderr


def trained(folder: Path) -> np.ndarray:
    return SharedModel.read(folder).V


def simulated(algorithm: str, *settings: str) -> fr.Run:
    config = assign(preset(algorithm), [*settings, "server.rounds=2", "server.held_back=0", "precision=float64"])
    return fr.train(*fr.folds(load(PEOPLE))[0], config)


@pytest.mark.parametrize(("algorithm", "setting"), [("fedmf", ""), ("fedrec+secure", "channel.bits=32")])
def test_silos_come_to_the_model_of_a_simulation(
    algorithm: str, setting: str, home: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "model"
    silos = ["federation", "simulation-config", "@none/default", "local", "--num-supernodes", "3"]
    subprocess.run([str(BIN / "flwr"), *silos], env=home, check=False, capture_output=True, timeout=PATIENCE)
    said = run(
        home, "local", dataset=PEOPLE, algorithm=algorithm, settings=setting, rounds=2, out=str(out), least_silos=2
    )
    assert (out / "result.json").exists(), said
    alone = simulated(algorithm, *setting.split())
    np.testing.assert_allclose(trained(out), alone.recommender.model.V, atol=1e-9)
    result = json.loads((out / "result.json").read_text())
    assert result["rmse"] == pytest.approx(alone.rmse, abs=1e-9)
    assert result["test_ratings"] == alone.result["test_ratings"]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Federation:
    """A SuperLink and SuperNodes, as processes."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        self.env, self.folder, self.port = env, folder, free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        command = [
            "--insecure",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--database",
            str(folder / "state.db"),
        ]
        self.start("flower-superlink", *command, "--disable-runtime-dependency-installation")
        config = Path(env["FLWR_HOME"]) / "config.toml"
        config.parent.mkdir(exist_ok=True)
        config.write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n'
        )
        deadline = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert time.monotonic() < deadline, "the SuperLink doesn't listen"
            time.sleep(0.2)

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{len(self.processes)}.log").open("wb")
        program = [str(BIN / command[0]), *command[1:]]
        process = subprocess.Popen(program, env=self.env, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)
        return process

    def node(self, **config: object) -> subprocess.Popen[bytes]:
        """A SuperNode with its own file of ratings."""
        given = " ".join(f"{name.replace('_', '-')}={json.dumps(value)}" for name, value in config.items())
        where = ["--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port()), "--node-config", given]
        return self.start("flower-supernode", "--insecure", *where)

    def end(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def federation(home: dict[str, str], tmp_path: Path) -> Iterator[Federation]:
    env = {**home, "FLWR_HOME": str(tmp_path / "home")}
    started = Federation(env, tmp_path)
    yield started
    started.end()


def files_of(parts: int, folder: Path) -> list[Path]:
    """Files of silos, each with its share of the people, and one film that no catalogue lists."""
    frame = load(PEOPLE).to_frame()
    people = sorted(frame["user"].unique().to_list())
    files = []
    for number in range(parts):
        own = set(people[number::parts])
        file = folder / f"silo{number}.csv"
        rows = [row for row in frame.iter_rows() if row[0] in own]
        lines = [f"{row[0]},{row[1]},{row[2]}" for row in [*rows, (min(own), "unlisted", 3)]]
        file.write_text("\n".join(["user,item,rating", *lines]) + "\n")
        files.append(file)
    return files


def test_a_federation_of_files_goes_on_without_a_silo_that_died(federation: Federation, tmp_path: Path) -> None:
    """Under secure sums: the killed silo's masks come out by the others' shares, or the round begins again."""
    ItemCatalogue.published(load(PEOPLE)).write(tmp_path / "items.safetensors")
    nodes = [federation.node(ratings=str(file)) for file in files_of(4, tmp_path)]
    out, items = tmp_path / "model", str(tmp_path / "items.safetensors")
    given = {"items": items, "rounds": 3, "out": str(out), "timeout": 40.0, "least-silos": 3}
    command = " ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
    running = subprocess.Popen(
        [str(BIN / "flwr"), "run", str(APP), "here", "--stream", "--run-config", command],
        env=federation.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said = []
    assert running.stdout is not None
    for line in running.stdout:
        said.append(line)
        if "round 1 of 3" in line:
            os.killpg(nodes[0].pid, signal.SIGKILL)
        if "the model is in" in line:
            break
    running.kill()
    running.communicate()
    text = "".join(said)
    assert "round 1 of 3: 400 people" in text, text
    assert "round 3 of 3: 300 people" in text, text
    model = SharedModel.read(out)
    assert np.isfinite(model.V).all()
    assert np.abs(model.V).max() > 0.01


def test_what_silos_cannot_run_is_refused_in_words() -> None:
    asked = {"algorithm": "fedrec++", "settings": "", "rounds": 0}
    with pytest.raises(fr.UserError, match="a protocol between single people"):
        config_of(asked)
    with pytest.raises(fr.UserError, match="compares single uploads"):
        config_of({**asked, "algorithm": "fedmf", "settings": "aggregation.rule=krum"})
    with pytest.raises(fr.UserError, match="single people's uploads"):
        config_of({**asked, "algorithm": "fedrec+secure", "settings": "channel.groups=2"})
