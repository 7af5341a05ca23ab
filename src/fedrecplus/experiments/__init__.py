"""Many trainings: comparison, cross-validation, tuning, and the figures that others published."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.experiments import (
        ablate as ablate,
        family as family,
        heterogeneity as heterogeneity,
    )
    from fedrecplus.experiments.baselines import is_import_path as is_import_path
    from fedrecplus.experiments.benchmark import (
        BENCHMARKS as BENCHMARKS,
        LISTS_OF as LISTS_OF,
        Benchmark as Benchmark,
        benchmark_named as benchmark_named,
        mean_rows as mean_rows,
        published_for as published_for,
        systems as systems,
        task_of as task_of,
    )
    from fedrecplus.experiments.comparison import (
        SPARE as SPARE,
        Comparison as Comparison,
        Summary as Summary,
        Table as Table,
        comparison_notes as comparison_notes,
        details_tables as details_tables,
        errors_table as errors_table,
        figure_cell as figure_cell,
        measure_tables as measure_tables,
        published as published,
        published_table as published_table,
        to_csv as to_csv,
        to_json as to_json,
        to_markdown as to_markdown,
    )
    from fedrecplus.experiments.cross_validation import (
        compare as compare,
        cross_validate as cross_validate,
        named_configs as named_configs,
    )
    from fedrecplus.experiments.jobs import Job as Job, JobOutcome as JobOutcome, Monitor as Monitor
    from fedrecplus.experiments.search_space import (
        Dimension as Dimension,
        Moment as Moment,
        Trial as Trial,
        default_dimensions as default_dimensions,
        parse_dimensions as parse_dimensions,
        with_values as with_values,
    )
    from fedrecplus.experiments.statistics import FoldMean as FoldMean, fold_mean as fold_mean
    from fedrecplus.experiments.trivial import (
        ADDED as ADDED,
        LIST_NAMES as LIST_NAMES,
        TRIVIAL as TRIVIAL,
        ndcg_of_popular as ndcg_of_popular,
        rmse_of_means as rmse_of_means,
    )
    from fedrecplus.experiments.tuning import Tuned as Tuned, import_optuna as import_optuna, tune as tune
    from fedrecplus.experiments.validation import Objective as Objective, tuning_cut as tuning_cut

lazily(__name__)
