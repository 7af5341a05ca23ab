"""``fedrecplus device`` and its neighbours, as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.small_data import small_ratings


@pytest.fixture
def home(tmp_path: Path) -> list[str]:
    assert exit_code_of(["device", "init", "--home", str(tmp_path / "me")]) == 0
    return ["--home", str(tmp_path / "me")]


def test_a_newcomer_gets_recommendations_without_a_round(
    tmp_path: Path, home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    homes = prepared(tmp_path, small_ratings(), small_config())
    serve(InProcessLink(homes), tmp_path / "run")
    assert exit_code_of(["device", "rate", "3", "5", *home]) == 0
    assert exit_code_of(["device", "rate", "9", "1", *home]) == 0
    capsys.readouterr()
    assert exit_code_of(["device", "recommend", "-n", "4", "--model", str(tmp_path / "run"), *home]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 5
    assert not any(line.startswith(("Item 3 ", "Item 9 ")) for line in lines)
    more = ["--explore", "0.3", "--include-seen", "--by", "rating", "--json", str(tmp_path / "list.json")]
    assert exit_code_of(["device", "recommend", "-n", "40", "--model", str(tmp_path / "run"), *more, *home]) == 0
    assert "explored: score" in capsys.readouterr().out
    listed = json.loads((tmp_path / "list.json").read_text())
    assert {"3", "9"} <= {str(row["item"]) for row in listed}
    assert {str(reason["item"]) for row in listed for reason in row["because"]} == {"3"}, "a 1 speaks for nothing"
    assert exit_code_of(["recommend", str(tmp_path / "run"), "--client", "3"]) == 2
    assert "device recommend" in capsys.readouterr().err, "a server has nobody's factors"


def test_a_node_recommends_from_the_newest_table_and_shows_what_it_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    homes = prepared(tmp_path, small_ratings(), small_config())
    serve(InProcessLink(homes), tmp_path / "run")
    node = ["--home", str(homes[1].path)]
    assert exit_code_of(["device", "recommend", "--person", "4", *node]) == 0
    assert len(capsys.readouterr().out.strip().splitlines()) == 11
    assert exit_code_of(["device", "status", "--json", *node]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [line["round"] for line in facts["sent"]] == [0, 1, 2]
    assert facts["persons"] == 10
    assert facts["bytes_sent"] > 0
    assert facts["seconds"] > 0
    assert facts["memory"] > 10**7
    assert exit_code_of(["device", "status", *node]) == 0
    assert "everything that was ever sent" in capsys.readouterr().out


def test_files_are_imported(tmp_path: Path, home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.csv").write_text("item,rating\n1193,5\n661,3\n")
    (tmp_path / "many.csv").write_text("user,item,rating\nann,1,5\nann,2,3\nbob,1,2\n")
    assert exit_code_of(["device", "import", str(tmp_path / "own.csv"), *home]) == 0
    assert exit_code_of(["device", "import", "--silo", str(tmp_path / "many.csv"), *home]) == 0
    capsys.readouterr()
    assert exit_code_of(["device", "status", "--json", *home]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["persons"], facts["ratings"]) == (3, 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["device", "rate", "3", "7"], "not on the scale"),
        (["device", "rate", "3"], "either a rating or --remove"),
        (["device", "rate", "3", "--remove"], "isn't rated"),
        (["device", "rate", "3", "4", "--person", "eve"], "no person"),
        (["device", "recommend"], "no model yet"),
        (["device", "sent"], "no model yet"),
        (["device", "import", "nowhere.csv"], "nowhere.csv: No such file"),
        (["device", "init"], "is there already"),
        (["node", "join", "nowhere"], "no address"),
        (["node", "join", "localhost:99999"], "no address"),
    ],
)
def test_mistakes_are_answered_in_words(
    arguments: list[str], said: str, home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of([*arguments, *home]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rating"),
        ("only one column\nx\n", "line 1: 1 columns"),
        ("1193,five\n2,three\n", "line 2: 'three' is no rating"),
        ("item,rating\n1193,5\n50,9\n", "line 3: 9 is not on the scale 1:5:1"),
        ("1193,5\n50,nan\n", "line 2: nan is not on the scale"),
        ("user,item,rating\n1,2,3\n", "--silo"),
        ("1193,5\n1193,4\n", "line 2: item '1193' for the second time"),
    ],
)
def test_a_file_without_ratings_is_refused(
    text: str, said: str, tmp_path: Path, home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    assert exit_code_of(["device", "import", str(tmp_path / "bad.csv"), *home]) == 2
    assert said in capsys.readouterr().err
    assert exit_code_of(["device", "status", *home]) == 0
    assert capsys.readouterr().out.startswith("0 ratings"), "nothing of it is stored"


def test_the_last_upload_can_be_looked_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    homes = prepared(tmp_path, small_ratings(), small_config())
    serve(InProcessLink(homes), tmp_path / "run")
    node = ["--home", str(homes[1].path)]
    with Store.open(homes[1].store) as store:
        store.rate({"no such item": 3.0}, 4)
        mine = store.ratings()[4].keys() - {"no such item"}
        rows = int(store.sent()[-1]["rows"])
    assert exit_code_of(["device", "sent", "--person", "4", *node]) == 0
    lines = capsys.readouterr().out.strip().splitlines()[1:]
    assert len(lines) < rows, "of one person"
    assert {line.split()[-3] for line in lines if "yes" in line.split()} == mine
    assert exit_code_of(["device", "status", *node]) == 0
    assert "1 of them are of items that the newest model doesn't know" in capsys.readouterr().out


def test_the_scale_can_be_changed_where_all_ratings_are_on_it(
    home: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["device", "rate", "3", "5", *home]) == 0
    assert exit_code_of(["device", "scale", "1:4:1", *home]) == 2
    assert exit_code_of(["device", "rate", "4", "3.5", *home]) == 2
    assert "device scale" in capsys.readouterr().err
    assert exit_code_of(["device", "scale", "0.5:5:0.5", *home]) == 0
    assert exit_code_of(["device", "rate", "4", "3.5", *home]) == 0


def test_everything_can_be_forgotten(tmp_path: Path, home: list[str]) -> None:
    assert exit_code_of(["device", "rate", "3", "5", *home]) == 0
    assert exit_code_of(["device", "forget", "--yes", *home]) == 0
    assert not (tmp_path / "me").exists()
    assert exit_code_of(["device", "status", *home]) == 2


def test_a_server_must_be_up_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["deploy", "run", "--out", str(tmp_path / "run"), "--home", str(tmp_path / "none")]
    assert exit_code_of(arguments) == 2
    assert "server up" in capsys.readouterr().err
