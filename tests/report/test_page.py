"""The page: what is in it, that it needs nothing from outside, and that every number says where it comes from."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fedrecplus
from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import loads
from fedrecplus.errors import UserError
from fedrecplus.web.report import gather, page, page_of, renewed, to_markdown
from fedrecplus.web.report.build import plotly_js
from fedrecplus.web.report.elements import plot, table
from fedrecplus.web.report.inputs import kind_of, made_of_runs
from tests.report.small_report import DATA, small_inputs, typed

SECTIONS = {
    "verdicts",
    "claims",
    "results",
    "pseudo-items",
    "two-by-two",
    "heterogeneity",
    "theory",
    "convergence",
    "frontier",
    "audit",
}


MADE = {"command": "fedrecplus train x", "version": "0.0.9", "commit": None, "when": "2025-01-02T03:04:05"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_inputs(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def report(folder: Path) -> str:
    assert exit_code_of(["report", str(folder), "--out", str(folder / "report.html")]) == 0
    return (folder / "report.html").read_text()


def own_part(report: str) -> str:
    """The page without the drawing library, which names addresses that it never asks."""
    return report.replace(plotly_js(), "")


def plots(page: str) -> list[dict]:
    """What the plots of a page show."""
    found = re.findall(r'<script type="application/json" data-for="[^"]+">(.*?)</script>', page)
    return [json.loads(text.replace("<\\/", "</")) for text in found]


class Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.sections: set[str] = set()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "section":
            self.sections.add(str(given["id"]))
        if tag not in ("meta", "link"):
            self.open.append(tag)
        self.outside += [str(given[name]) for name in ("src", "href") if name in given]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_section_is_there_and_every_tag_is_closed(report: str) -> None:
    outline = Outline()
    outline.feed(own_part(report))
    assert outline.sections == SECTIONS
    assert outline.open == []
    assert all(address.startswith(("#", "data:")) for address in outline.outside)


def test_nothing_is_fetched(report: str) -> None:
    assert not re.search(r"https?://|@import|url\(", own_part(report))


def test_lists_stand_beside_errors(report: str) -> None:
    assert "ranking measures, and figures by group" in report
    assert "global-mean (popularity)" in report
    lists = next(each for each in plots(report) if each["layout"]["xaxis"]["title"]["text"] == "NDCG@10")
    assert lists["data"][0]["y"] == ["global-mean (popularity)", "bias-only", "fedrec", "fedrec+"]
    assert all(0 <= ndcg <= 1 for ndcg in lists["data"][0]["x"])


def test_plots_have_data_beside_them(report: str) -> None:
    drawn = plots(report)
    assert len(drawn) == len(re.findall(r'class="plot" id="', report)) >= 8
    assert all(each["data"] for each in drawn)


def test_numbers_of_studies_say_command_version_commit_seed_and_time(report: str) -> None:
    origins = re.findall(r'<details class="made">.*?</dl>', report)
    assert len(origins) >= 6
    for origin in origins:
        assert all(f"<dt>{name}</dt>" in origin for name in ("command", "version", "commit"))
        assert "not recorded" not in origin
        assert f"fedrecplus {fedrecplus.__version__}" in origin
    for name in ("compare", "family run", "ablate", "ablate heterogeneity", "theory", "audit"):
        assert f"<dd><code>fedrecplus {name} " in report


def test_every_run_keeps_its_own_origin_whatever_checkout_the_page_is_made_from() -> None:
    run = {"algorithm": "fedmf", "dataset": "d", "fold": 0, "seed": 3}
    resumed = {**MADE, "command": "fedrecplus train --resume", "commit": "def", "seconds": 2.0}
    made = ({**MADE, "resumed": resumed}, {**MADE, "commit": "abc"})
    shown = made_of_runs([*({**run, "fold": fold, "made": one} for fold, one in enumerate(made)), run])
    for part in ("train x", "train --resume", ">def<"):
        assert part in shown
    assert "fedrecplus 0.0.9" in shown
    assert "did not run from a git checkout" in shown
    assert ">abc<" in shown
    assert "not recorded" in shown
    assert "2025-01-02 03:04:05" in shown


def test_the_paper_s_numbers_stand_beside_its_own_family_and_not_beside_our_presets(folder: Path) -> None:
    named = (folder / "table" / "comparison.json").read_text().replace(DATA, "ml-100k")
    ours = own_part(page_of([json.loads(named)]))
    assert "In the paper" not in ours
    assert "is not the paper&#x27;s algorithm" in ours
    content = json.loads((folder / "family.json").read_text().replace(DATA, "ml-100k"))
    page = own_part(page_of([content]))
    assert "The paper prints 1.1713 for FedRec+ and 1.3179 for FedRec, a change of -0.1466" in page
    for claim in content["claims"]:
        assert f"{claim['difference']:+.4f}" in page
        assert claim["says"].replace("'", "&#x27;") in page


def test_the_first_section_says_in_words_which_claims_hold_and_by_how_much(folder: Path) -> None:
    content = json.loads((folder / "family.json").read_text())
    changes = [(-0.027, -0.02, 1e-9), (0.01, 0.02, 1e-9), (0.003, -0.02, 1e-9), (0.001, 0.0, 0.9)]
    for claim, (difference, by_client, p) in zip(content["claims"], changes, strict=False):
        claim["difference"] = difference
        claim["test"] |= {"difference": by_client, "p": p, "ranks": by_client}
    said = own_part(page_of([content])).split("</section>")[0]
    assert "The paper&#x27;s claims, in words" in said
    held, opposite, disagreed, none = (
        said.partition(words)[2]
        for words in ("Hold, by", "The opposite holds of", "disagree on", "No difference is shown for")
    )
    assert "(Table I) (-0.0270)" in held[: -len(opposite)]
    assert "hybrid filling (+0.0100)" in opposite[: -len(disagreed)]
    assert "FedRec++ (+0.0030)" in disagreed[: -len(none)]
    assert "no pseudo items at all (+0.0010)" in none
    theory = json.loads((folder / "theory.json").read_text())
    assert "Weights, by χ² against uniform ones: even in every round" in own_part(page_of([theory]))
    ours = json.loads((folder / "table" / "comparison.json").read_text())
    assert "in words" not in own_part(page_of([ours]))


def test_fedrec_s_models_have_its_authors_figures_beside_them_and_make_no_claim(folder: Path) -> None:
    content = json.loads((folder / "family.json").read_text().replace(DATA, "ml-100k"))
    content |= {"model": "svdpp", "claims": []}
    page = own_part(page_of([content]))
    assert "FedRec&#x27;s two models on ml-100k" in page
    assert "0.9185" in page
    assert "in words" not in page


def test_a_document_s_tables_are_renewed_between_its_marks_and_nothing_else_is(folder: Path, tmp_path: Path) -> None:
    family = json.loads((folder / "family.json").read_text())
    name = f"family {DATA} mf fixed"
    text = f"before\n<!-- {name} -->\nstale\n<!-- end -->\nafter\n<!-- figure elsewhere -->\nkept\n<!-- end -->\n"
    (tmp_path / "doc.md").write_text(text)
    assert typed(["report", str(folder), "--out", str(tmp_path / "r.html"), "--into", str(tmp_path / "doc.md")]) == 0
    found = (tmp_path / "doc.md").read_text()
    assert found.startswith(f"before\n<!-- {name} -->\n")
    assert found.endswith("<!-- end -->\nafter\n<!-- figure elsewhere -->\nkept\n<!-- end -->\n")
    assert "stale" not in found
    for member in family["members"]:
        assert f"{member['figures']['rmse']['mean']:.4f}" in found
    assert family["made"]["command"] in found


def test_a_document_is_told_verdicts_in_the_words_of_the_page(folder: Path) -> None:
    found = renewed(f"<!-- says heterogeneity {DATA} -->\nstale\n<!-- end -->\n", gather([folder / "h.json"]))
    page = own_part(page_of([json.loads((folder / "h.json").read_text())]))
    assert found.splitlines()[1] in page.replace("&#x27;", "'")
    assert "scenarios" in found.splitlines()[1]


def test_ideas_keep_the_columns_of_data_sets_that_weren_t_run(folder: Path) -> None:
    """And their own are renewed, not repeated."""
    found = gather([folder / "family.json"])
    empty = "<!-- ideas mf -->\n<!-- end -->\n"
    once = renewed(empty, found)
    elsewhere = once.replace(f"{DATA}, mf, fixed", "elsewhere, mf, fixed")
    both = renewed(elsewhere, found)
    head = "the claim, and the change of RMSE"
    assert both.splitlines()[1] == f"| {head} | elsewhere, mf, fixed | {DATA}, mf, fixed |"
    claims = json.loads((folder / "family.json").read_text())["claims"]
    own = [f"| {each['says']} | {each['verdict']}, {each['difference']:+.4f} |" for each in claims]
    assert once.splitlines()[3:-1] == own
    assert renewed(both, found) == both
    assert renewed(once, found) == once
    assert all(line.split(" | ")[1] == line.split(" | ")[2][:-2] for line in both.splitlines()[3:-1])


def test_of_two_contents_of_one_kind_both_are_shown_in_sections_with_names_of_their_own(folder: Path) -> None:
    comparison = json.loads((folder / "table" / "comparison.json").read_text())
    assert own_part(page_of([comparison, comparison])).count(f"<h3>{DATA}</h3>") == 2
    content = json.loads((folder / "theory.json").read_text())
    outline = Outline()
    outline.feed(own_part(page_of([content, content])))
    assert outline.sections == {"verdicts", "theory-1", "theory-2"}


def test_an_audit_shows_every_case_against_error_bytes_and_attacks(folder: Path, report: str) -> None:
    content = json.loads((folder / "audit.json").read_text())
    section = report.split('<section id="audit">')[1].split("</section>")[0]
    lines = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)
        for line in re.findall(r"<tr><th scope=\"row\">.*?</tr>", section)
    ]
    attacks = ["popularity", "one-round"]
    assert all(f'<th scope="col">{attack}</th>' in section for attack in attacks)
    for row in content["rows"]:
        shown = next(line for line in lines if line[:2] == [row["scheme"], str(row["local_epochs"])])
        assert shown[3] == f"{row['rmse']:.4f}".removeprefix("0")
        assert shown[4] == f"{row['bytes_up_per_client_round'] / 1000:.1f}"
        auc = shown[7 + attacks.index(row["attack"])]
        assert auc == (f"{row['auc']:.3f}".removeprefix("0") if row["applies"] else "–")
    assert "tells rated items from" in section


def test_an_audit_draws_curves_over_false_alarms_on_logarithmic_axes(folder: Path, report: str) -> None:
    rows = json.loads((folder / "audit.json").read_text())["rows"]
    section = report.split('<section id="audit">')[1].split("</section>")[0]
    curves = [json.loads(data.split(">", 1)[1]) for data in re.findall(r"<script[^<]*?>[^<]*", section)]
    (curve,) = [one for one in curves if one["layout"]["xaxis"].get("type") == "log"]
    strongest = max((row for row in rows if row["scheme"] == "fedmf"), key=lambda row: row["auc"])
    assert curve["layout"]["yaxis"]["type"] == "log"
    assert len(curve["data"]) == 4  # two cases, each with its control
    assert curve["data"][0]["y"] == strongest["roc"]


def test_the_frontier_joins_comparisons_and_audits(folder: Path, report: str, tmp_path: Path) -> None:
    pair, table = (folder / "table" / "comparison.json", folder / "audit.json"), tmp_path / "frontier.md"
    page = ["--out", str(tmp_path / "page.html"), "--markdown", str(table)]
    assert exit_code_of(["report", *map(str, pair), *page]) == 0
    comparison, audit = (json.loads(path.read_text()) for path in pair)
    assert table.read_text() == to_markdown([comparison], [audit])
    errors = [row["rmse"] for row in comparison["rows"] if row["algorithm"] == "fedrec+"]
    line = next(line for line in table.read_text().splitlines() if line.startswith("| fedrec+ |"))
    assert (
        f"{sum(errors) / len(errors):.4f}".removeprefix("0") in line
    )  # of the folds, and the audit's attacks beside it
    assert "popularity" in line or "one-round" in line
    section = report.split('<section id="frontier">')[1].split("</section>")[0]
    assert '<th scope="row">fedrec+ · clear</th>' in section
    assert plots(section)[0]["layout"]["xaxis3"]["title"]["text"] == "AUC, strongest attack"


def test_drift_is_drawn_over_k(folder: Path) -> None:
    content = json.loads((folder / "h.json").read_text())
    drift = next(
        each
        for each in plots(page_of([content]))
        if each["layout"]["xaxis"].get("title", {}).get("text") == "K, local epochs"
    )
    assert drift["data"][0]["x"] == [loads(content["config"]).model.settings.local_epochs, 5, 10, 20]
    last = next(each for each in content["cells"] if (each["scenario"], each["rule"]) == ("drift-20", "uniform"))
    assert drift["data"][0]["y"][-1] == last["rmse"]["mean"]


def test_text_is_escaped() -> None:
    assert "<b>" not in table(["<b>"], [["<b>", "<b>"]], "<b>")
    name = "<!--<script></script>"  # after a comment's beginning and a tag, the script's end would be none
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*)</script>', plot([{"name": name}], {}, "x"))
    assert "<" not in data
    assert json.loads(data)["data"] == [{"name": name}]


def test_contents_are_recognised_by_what_they_hold(tmp_path: Path) -> None:
    assert kind_of({"kind": "theory"}) == "theory"
    assert kind_of([{"scheme": "a", "attack": "b"}]) == "audit"
    assert kind_of({"rows": [], "summary": []}) == "comparison"
    assert kind_of({"hello": 1}) is None
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UserError, match="nothing to report on"):
        gather([tmp_path])
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad\.json"):
        gather([tmp_path / "bad.json"])
    (tmp_path / "cut.json").write_text('{"kind": "theory", "rounds": [1]}')
    with pytest.raises(UserError, match=r"cut\.json: theory without 'conditions'"):
        page(gather([tmp_path / "cut.json"]), "title", "")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "result.json").write_text("{}")
    with pytest.raises(UserError, match=r"run: run without 'dataset'"):
        page(gather([tmp_path / "run"]), "title", "")
    with pytest.raises(UserError, match="does not exist"):
        gather([tmp_path / "nowhere"])


def test_any_runs_make_a_page_and_those_with_other_settings_are_kept_apart(tmp_path: Path) -> None:
    train = ["train", "--dataset", DATA, "--algorithm", "fedmf", "--set", "evaluation.every=1"]
    for folder, more in {
        "a": ["--set", "server.rounds=2"],
        "b": ["--set", "server.rounds=2", "--fold", "1"],
        "c": ["--set", "server.rounds=3"],
        "d": ["--set", "server.rounds=2", "--full"],
    }.items():
        assert exit_code_of([*train, *more, "--out", str(tmp_path / folder)]) == 0
    assert exit_code_of(["report", *map(str, tmp_path.iterdir()), "--out", str(tmp_path / "page.html")]) == 0
    page = own_part((tmp_path / "page.html").read_text())
    assert '<section id="runs">' in page
    assert "fedmf, server.rounds=2" in page
    assert "fedmf, server.rounds=3" in page
    assert exit_code_of(["report", str(tmp_path / "d"), "--out", str(tmp_path / "full.html")]) == 0
    assert "(fit)" in (tmp_path / "full.html").read_text()


def test_an_audit_with_few_figures_makes_a_page() -> None:
    content = {"rows": [{"scheme": "a", "attack": "b", "rmse": 1.0, "auc": 0.5}]}
    assert '<section id="frontier">' in page_of([content])


def test_a_page_of_one_run_is_below_a_megabyte_and_has_its_lists_and_groups(tmp_path: Path) -> None:
    train = ["train", "--dataset", DATA, "--algorithm", "fedmf", "--set", "server.rounds=4", "--out", str(tmp_path)]
    assert exit_code_of(train) == 0
    assert exit_code_of(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").stat().st_size < 1_000_000
    page, result = (tmp_path / "page.html").read_text(), json.loads((tmp_path / "result.json").read_text())
    for figure in (
        result["ranking"]["mrr@10"],
        result["ranking"]["groups"]["tail_items"]["ndcg@10"],
        result["groups"]["worst_tenth"]["rmse"],
    ):
        assert f"<td>{figure:.4f}</td>" in page
    assert "±" not in page.split("<tbody>")[1].split("</tbody>")[0]  # of one fold


def test_learning_curves_begin_with_round_1_and_mark_their_points(report: str) -> None:
    rounds, seconds = (
        next(each for each in plots(report) if each["layout"]["xaxis"].get("title", {}).get("text") == title)
        for title in ("round", "seconds of training")
    )
    assert all(each["x"][0] == 1 and each["mode"] == "lines+markers" for each in rounds["data"])
    assert all(each["mode"] == "lines+markers" for each in seconds["data"])
    assert rounds["layout"]["yaxis"]["hoverformat"] == ".4f"  # as in tables and sentences


def test_studies_make_pages_of_their_own(folder: Path, tmp_path: Path) -> None:
    quick = ["--dataset", DATA, "--set", "server.rounds=3"]
    run, pages = (
        folder / "table" / "fedrec" / "fold-0",
        [tmp_path / f"{name}.html" for name in ("ablation", "theory", "audit")],
    )
    assert exit_code_of(["ablate", "two-by-two", *quick, "--folds", "2", "--plot", str(pages[0])]) == 0
    assert exit_code_of(["theory", str(run), "--looks", "4", "--plot", str(pages[1])]) == 0
    few = ["--users", "4", "--rounds", "2", "--attacks", "popularity", "--workers", "1"]
    assert exit_code_of(["audit", "--algorithm", str(run), *quick, *few, "--html", str(pages[2])]) == 0
    for place, section in zip(pages, ("two-by-two", "theory", "frontier"), strict=True):
        assert f'<section id="{section}">' in place.read_text()


def test_the_paper_s_preset_is_told_with_its_best_round_and_where_it_ends(tmp_path: Path) -> None:
    quick = ["--dataset", DATA, "--set", "server.rounds=8", "--set", "evaluation.every=1", "--set", "model.factors=3"]
    small = ["--set", "model.learning_rate=0.008", "--out", str(tmp_path / "run")]
    assert typed(["train", "--algorithm", "fedrec+paper", *quick, *small]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    errors = {line["round"]: line["rmse"] for line in lines if "rmse" in line}
    best = min(errors, key=lambda number: errors[number])
    found = renewed(f"<!-- course {DATA} -->\n<!-- end -->\n", gather([tmp_path / "run"]))
    assert f"lowest RMSE, {errors[best]:.4f}, in round {best} " in found
    assert f"ends after 8 rounds with {errors[8]:.4f}." in found
