"""What uploads give away, against what they are good for."""

from __future__ import annotations

from typing import Any

from fedrecplus.report.elements import Section, paragraph, plot, table
from fedrecplus.report.origins import made

_COLUMNS = {
    "scheme": "scheme", "attack": "attack", "pseudo_ratio": "ρ", "local_epochs": "K", "rmse": "RMSE",
    "bytes_up_per_client_round": "bytes up", "rating_exact": "ratings read", "rating_floor": "by guessing",
    "precision": "precision", "recall": "recall", "f1": "F1", "auc": "AUC", "tpr_at_1pct_fpr": "TPR at 1 % FPR",
    "chance": "chance",
}  # fmt: skip


def audit_section(content: dict[str, Any]) -> Section:
    """The frontier: error against the best attack's success, a point per scheme and attack."""
    rows = content["rows"]
    measured = [row for row in rows if row.get("rmse") is not None and row.get("auc") is not None]
    traces: dict[str, dict[str, Any]] = {}
    for row in measured:
        trace = traces.setdefault(
            row["attack"], {"type": "scatter", "mode": "markers", "name": row["attack"], "x": [], "y": [], "text": []}
        )
        trace["x"].append(row["rmse"])
        trace["y"].append(row["auc"])
        trace["text"].append(f"{row['scheme']}, ρ={row.get('pseudo_ratio')}, K={row.get('local_epochs')}")
    layout = {
        "xaxis": {"title": {"text": "RMSE"}},
        "yaxis": {"title": {"text": "AUC: rated rows told from pseudo rows"}, "range": [0.4, 1.02]},
    }
    shown = [name for name in _COLUMNS if any(name in row for row in rows)]
    parts = [
        paragraph("Down and to the left is better: lower error, and an attack that does no better than a coin (0.5)."),
        plot(list(traces.values()), layout, "Accuracy against what attacks find out.") if measured else "",
        table([_COLUMNS[name] for name in shown], [[_cell(row.get(name)) for name in shown] for row in rows]),
        made(content.get("made"), {f"config of {name}": config for name, config in content.get("configs", {}).items()}),
    ]
    return Section("audit", "What uploads give away", parts)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"
