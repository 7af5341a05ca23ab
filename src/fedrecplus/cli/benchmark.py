"""``fedrecplus benchmark``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus import experiments
from fedrecplus.cli.declaring import JsonFile, check_file_place, names_in, whole_numbers_in
from fedrecplus.cli.display import say, show_table, tell
from fedrecplus.errors import unknown_name
from fedrecplus.files import write_json_to, write_text
from fedrecplus.markdown import markdown_table
from fedrecplus.provenance import Stopwatch

_PAGE = """# Benchmarks

Other papers' data and splits, by `fedrecplus benchmark NAME`. Settings are the presets', or chosen by the default on
a validation cut of the training ratings; nothing was chosen on these tests. *Sees*: what a server gets. KB that a
client sends in the whole training, the default's with its choice. Published figures stand apart: their protocols
differ where it is said. Lists: every test item is relevant, whatever its rating; *full* ranks it among all items that
the person hasn't rated, *sampled* among 99.
"""


def benchmark_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help=f"Of: {', '.join(experiments.BENCHMARKS)}.")],
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the files are. Default: $FEDRECPLUS_DATA, or here.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="S,T,…", help="Seeds; figures are means over them.")] = "0",
    only: Annotated[str | None, typer.Option(metavar="A,B,…", help="Run these systems alone.")] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the tables into this page, in the place of earlier ones.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Run a benchmark that papers use: our presets, the family, centralised models, and what others published.

    \b
    Examples:
      fedrecplus benchmark ml-100k-last
      fedrecplus benchmark ml-1m-90 --data ~/data --seeds 0,1,2,3,4
      fedrecplus benchmark monti-douban monti-flixster --data ~/data --page docs/benchmarks.md
    """
    check_file_place(json_file)
    chosen = [experiments.benchmark_named(name) for name in names]
    numbers = whole_numbers_in(seeds, "--seeds", "0,1,2")
    done: dict[str, Any] = {}
    for benchmark in chosen:
        watch = Stopwatch()
        rows = _run(benchmark, numbers, data, names_in(only))
        done[benchmark.name] = {"rows": rows, "seeds": numbers, "made": watch.made(numbers[0])}
        show_table(*table_of(benchmark, rows), f"{benchmark.name}: {benchmark.summary}")
        if others := experiments.published_for(benchmark.name):
            say("")
            show_table(*published_table(others), "published")
        if page is not None:
            _renew(page, benchmark, done[benchmark.name], others)
    write_json_to(json_file, done)


def _run(
    benchmark: experiments.Benchmark, seeds: list[int], data: Path | None, only: list[str]
) -> dict[str, dict[str, Any]]:
    known = experiments.systems(benchmark)
    for name in only:
        if name not in known:
            raise unknown_name("system", name, known)
    by_system: dict[str, list[dict[str, Any]]] = {}
    for seed in seeds:
        task = experiments.task_of(benchmark, seed, data)
        for name in only or known:
            tell(f"{benchmark.name}, seed {seed}: {name}")
            by_system.setdefault(name, []).append(known[name](task))
    return {name: experiments.mean_rows(rows) for name, rows in by_system.items()}


def table_of(benchmark: experiments.Benchmark, rows: dict[str, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows."""
    sampled = ("sampled_hr@10", "sampled_ndcg@10") if benchmark.measure == experiments.LISTS_OF else ()
    figures = {"rmse": "RMSE", "full_ndcg": "NDCG@10, full"}
    figures |= dict(zip(sampled, ("HR@10, sampled", "NDCG@10, sampled"), strict=False))
    headings = ["system", *figures.values(), "sees", "KB up", "seconds"]
    lines = []
    for name, row in rows.items():
        title = f"{name}: {row['algorithm']}" if name.startswith("default") else name
        costs = [row["sees"], "–" if row["kb_up"] is None else f"{row['kb_up']:,.0f}", f"{row['seconds']:.1f}"]
        lines.append([title, *("–" if row[key] is None else f"{row[key]:.4f}" for key in figures), *costs])
    return headings, lines


def published_table(others: list[dict[str, str]]) -> tuple[list[str], list[list[str]]]:
    """What others report."""
    keys = [key for key in ("rmse", "hr", "ndcg") if any(row[key] for row in others)]
    names = {"rmse": "RMSE", "hr": "HR@10", "ndcg": "NDCG@10"}
    headings = ["published", "ratings are", *(names[key] for key in keys), "source", "protocol"]
    where = {"centralised": "in one place", "federated": "on devices"}
    rows = [
        [row["system"], where[row["kind"]], *(row[key] or "–" for key in keys), row["source"], row["protocol"] or "–"]
        for row in others
    ]
    return headings, rows


def _renew(page: Path, benchmark: experiments.Benchmark, done: dict[str, Any], others: list[dict[str, str]]) -> None:
    """Write a benchmark's tables into a page, in the place of its earlier ones."""
    text = page.read_text(encoding="utf-8") if page.exists() else _PAGE
    made, before, after = done["made"], f"<!-- {benchmark.name} -->", f"<!-- end of {benchmark.name} -->"
    origin = f"`{_plain(made['command'])}`, commit {made['commit']}, {made['cores']} cores, {made['when'][:10]}"
    choices = [f"Default: {row['choice']}.\n" for row in done["rows"].values() if row.get("choice")]
    parts = [f"## {benchmark.name}\n\n{benchmark.summary}.\n", markdown_table(*table_of(benchmark, done["rows"]))]
    parts += [*choices, f"{origin}.\n", *([markdown_table(*published_table(others))] if others else [])]
    section = "\n".join([before, *parts, after])
    pattern = re.compile(f"{re.escape(before)}.*?{re.escape(after)}", re.S)
    block = pattern.search(text)
    renewed = f"{text.rstrip()}\n\n{section}\n" if block is None else text.replace(block[0], section)
    write_text(page, renewed)


def _plain(command: str) -> str:
    """A command without the folders of the machine that it ran on."""
    return re.sub(r"(--data )\S+", r"\1DATA", command)
