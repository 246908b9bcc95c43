"""Optuna on SQLite: curves of 150 epochs, stored and read."""

import contextlib
import sqlite3
import time

from common import Bench, report, skip

TRIALS = 100
MORE_TRIALS = 1000  # copied row by row: storing them through Optuna takes minutes
EPOCHS = 150
READINGS = 3

try:
    import optuna
except ImportError as missing:
    skip("Optuna + SQLite", f"{missing}")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def copy_trials(path, count):
    """Copies the existing trials until there are `count`."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for first in range(TRIALS, count, TRIALS):
            db.execute("INSERT INTO trials (trial_id, number, study_id, state, datetime_start, "
                       "datetime_complete) SELECT trial_id + ?1, number + ?1, study_id, state, "
                       "datetime_start, datetime_complete FROM trials WHERE number < ?2",
                       (first, TRIALS))
            db.execute("INSERT INTO trial_values (trial_id, objective, value, value_type) SELECT "
                       "trial_id + ?1, objective, value, value_type FROM trial_values JOIN trials "
                       "USING (trial_id) WHERE number < ?2", (first, TRIALS))
            db.execute("INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
                       "intermediate_value_type) SELECT trial_id + ?1, step, intermediate_value, "
                       "intermediate_value_type FROM trial_intermediate_values JOIN trials USING "
                       "(trial_id) WHERE number < ?2", (first, TRIALS))


def read_all(url, trials):
    """Epochs per second in Optuna's best case.

    The file is in memory, the copies that `study.trials` makes are avoided, and the best of several
    runs counts.
    """
    best = 0.0
    for _ in range(READINGS):
        # An earlier study object would have a cache.
        fresh = optuna.load_study(storage=url, study_name="bench")
        began = time.monotonic()
        values = sum(len(trial.intermediate_values) for trial in fresh.get_trials(deepcopy=False))
        best = max(best, values / (time.monotonic() - began))
        assert values == trials * EPOCHS, values
    report("Optuna + SQLite", f"all curves read, {trials} trials", best, "epochs/s", "",
           f"one value an epoch; best of {READINGS}; pelab reads ten")


with Bench() as bench:
    path = bench.folder / "optuna.db"
    url = f"sqlite:///{path}"
    study = optuna.create_study(storage=url, study_name="bench")
    began = time.monotonic()
    for _ in range(TRIALS):
        trial = study.ask()
        for epoch in range(EPOCHS):
            trial.report(1.0 / (epoch + 3), epoch)
        study.tell(trial, 1.0)
    report("Optuna + SQLite", "epochs stored", TRIALS * EPOCHS / (time.monotonic() - began),
           "epochs/s",
           "SQLite's default: every commit synced", "one value an epoch; pelab stores eight")
    read_all(url, TRIALS)
    copy_trials(path, MORE_TRIALS)
    read_all(url, MORE_TRIALS)
