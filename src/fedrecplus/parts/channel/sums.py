"""The cohort's sums and nothing else: what ideal secure aggregation would show. Simulation only, no cryptography."""

from __future__ import annotations

VIEW = "sums"
SIMULATION_ONLY = True
