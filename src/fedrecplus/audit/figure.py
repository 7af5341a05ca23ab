"""The frontier as a figure: accuracy against the strongest attack, one point per scheme and K."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from fedrecplus.errors import UserError

_CHANCE = 0.5


def page(rows: Sequence[dict[str, Any]], title: str) -> str:
    """A page that stands alone: RMSE across, the chosen attack's AUC up; a point's size is what it uploads."""
    try:
        graph_objects = importlib.import_module("plotly.graph_objects")
    except ImportError:
        raise UserError("the figure wants plotly", "pip install plotly, or leave --html away") from None
    figure = graph_objects.Figure()
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    strongest = [max(group, key=_auc) for group in _by_case(rows)]
    for name in ["strongest", *attacks]:
        points = strongest if name == "strongest" else [row for row in rows if row["attack"] == name]
        points = [row for row in points if row["rmse"] is not None]
        figure.add_trace(
            graph_objects.Scatter(
                x=[row["rmse"] for row in points],
                y=[_auc(row) for row in points],
                text=[f"{row['scheme']}, K={row['local_epochs']}" for row in points],
                customdata=[row["attack"] for row in points],
                hovertemplate="%{text}<br>RMSE %{x:.4f}<br>%{customdata}: AUC %{y:.3f}<extra></extra>",
                mode="markers+text",
                textposition="top center",
                marker={"size": [8 + row["bytes_up_per_client_round"] / 2000 for row in points]},
                name=name,
                visible=name == "strongest" or "legendonly",
            )
        )
    figure.update_layout(
        title=f"{title}: what accuracy costs in privacy",
        xaxis_title="RMSE on the test fold",
        yaxis_title="AUC: rated rows told from pseudo rows (1 without pseudo rows)",
        template="plotly_white",
    )
    figure.add_hline(y=_CHANCE, line_dash="dot")
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def _auc(row: dict[str, Any]) -> float:
    """Without pseudo rows every uploaded item is a rated one: nothing is hidden."""
    return 1.0 if row["auc"] is None else float(row["auc"])


def _by_case(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    keys = dict.fromkeys((row["scheme"], row["local_epochs"]) for row in rows)
    return [[row for row in rows if (row["scheme"], row["local_epochs"]) == key] for key in keys]
