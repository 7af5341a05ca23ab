"""Run by the interpreter that has scikit-surprise: fit SVD with its defaults, print seconds and test RMSE.

python surprise_fit.py TRAIN.csv TEST.csv REPEATS
"""

from __future__ import annotations

import json
import statistics
import sys
import time

from surprise import SVD, Dataset, Reader, accuracy


def main(train: str, test: str, repeats: int) -> None:
    reader = Reader(line_format="user item rating", sep=",", rating_scale=(1, 5))
    data = Dataset.load_from_folds([(train, test)], reader)
    trainset = data.construct_trainset(data.read_ratings(train))
    testset = data.construct_testset(data.read_ratings(test))
    seconds, errors = [], []
    for seed in range(repeats):
        model = SVD(random_state=seed)
        started = time.perf_counter()
        model.fit(trainset)
        seconds.append(time.perf_counter() - started)
        errors.append(accuracy.rmse(model.test(testset), verbose=False))
    rmse = statistics.mean(errors)
    print(json.dumps({"seconds": min(seconds), "median": statistics.median(seconds), "rmse": rmse}))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
