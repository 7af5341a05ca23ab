"""One training: the loop over rounds, evaluation, the run folder with its checkpoints, and the recommender."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.training import ranking as ranking
    from fedrecplus.training.callbacks import (
        Callback as Callback,
        EarlyStopping as EarlyStopping,
        MLflow as MLflow,
        Progress as Progress,
        ProgressBar as ProgressBar,
        Step as Step,
        TensorBoard as TensorBoard,
        WandB as WandB,
        silent_progress as silent_progress,
    )
    from fedrecplus.training.choosing import (
        AUTO as AUTO,
        FALLBACK as FALLBACK,
        RATINGS as RATINGS,
        Choice as Choice,
        choose as choose,
        left_out_of_sums as left_out_of_sums,
    )
    from fedrecplus.training.estimator import FedRec as FedRec
    from fedrecplus.training.evaluation import (
        Errors as Errors,
        Fallback as Fallback,
        Predictor as Predictor,
        Scores as Scores,
        errors_of as errors_of,
        predictor_of as predictor_of,
        score as score,
        score_of_mean as score_of_mean,
        untrained_scores as untrained_scores,
    )
    from fedrecplus.training.lists import (
        ListOptions as ListOptions,
        Price as Price,
        Recommendation as Recommendation,
        TopList as TopList,
        list_or_rating_weights as list_or_rating_weights,
        title_of as title_of,
    )
    from fedrecplus.training.loop import CHECKPOINT_SECONDS as CHECKPOINT_SECONDS, train as train
    from fedrecplus.training.measures import (
        Evaluation as Evaluation,
        evaluate as evaluate,
        measure as measure,
        predictor_for as predictor_for,
    )
    from fedrecplus.training.model_files import (
        MODEL as MODEL,
        SharedModel as SharedModel,
        nobodys_parts as nobodys_parts,
        read_tensors as read_tensors,
    )
    from fedrecplus.training.privacy import (
        LEDGER as LEDGER,
        Ledger as Ledger,
        budget_spent as budget_spent,
        privacy_lines as privacy_lines,
        privacy_of as privacy_of,
    )
    from fedrecplus.training.publishing import PUBLIC_LIST as PUBLIC_LIST
    from fedrecplus.training.ranking import MEASURES as MEASURES
    from fedrecplus.training.recency import is_validated as is_validated
    from fedrecplus.training.recommender import Recommender as Recommender
    from fedrecplus.training.registry import (
        PublishedModel as PublishedModel,
        Registry as Registry,
        digest_of as digest_of,
        finished_model as finished_model,
    )
    from fedrecplus.training.run import Run as Run, channel_of as channel_of
    from fedrecplus.training.run_folder import (
        CONFIG as CONFIG,
        METRICS as METRICS,
        RESULT as RESULT,
        Checkpoint as Checkpoint,
        RunFolder as RunFolder,
        Tally as Tally,
        fingerprint as fingerprint,
    )
    from fedrecplus.training.running import (
        MOST_RETRIES as MOST_RETRIES,
        refuse_blown_up as refuse_blown_up,
        step_size as step_size,
        with_smaller_step as with_smaller_step,
    )
    from fedrecplus.training.sampled import Candidates as Candidates, sampled_ranking as sampled_ranking
    from fedrecplus.training.warm_start import continued as continued

lazily(__name__)
