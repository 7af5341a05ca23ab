"""Simulating all clients on one machine: the problem, its state, and the reference engine."""

from fedrecplus.simulation.prediction import prediction_factors, prediction_table
from fedrecplus.simulation.problem import Problem, item_averages, mean_rating, prepare
from fedrecplus.simulation.reference import simulate_round
from fedrecplus.simulation.state import RoundReport, SimulationState, start

__all__ = [
    "Problem",
    "RoundReport",
    "SimulationState",
    "item_averages",
    "mean_rating",
    "prediction_factors",
    "prediction_table",
    "prepare",
    "simulate_round",
    "start",
]
