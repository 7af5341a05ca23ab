"""One training: the loop over rounds, evaluation, the run folder with its checkpoints, and the recommender."""

from fedrecplus.training.callbacks import Progress, Step
from fedrecplus.training.loop import train
from fedrecplus.training.measures import Evaluation, evaluate
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run import Run

__all__ = ["Evaluation", "Progress", "Recommender", "Run", "Step", "evaluate", "train"]
