"""Optuna on SQLite: curves of 150 epochs, stored and read."""

import time

from common import Bench, report, skip

TRIALS = 100
EPOCHS = 150

try:
    import optuna
except ImportError as missing:
    skip("Optuna + SQLite", f"{missing}")
optuna.logging.set_verbosity(optuna.logging.ERROR)
with Bench() as bench:
    url = f"sqlite:///{bench.folder}/optuna.db"
    study = optuna.create_study(storage=url, study_name="bench")
    began = time.monotonic()
    for _ in range(TRIALS):
        trial = study.ask()
        for epoch in range(EPOCHS):
            trial.report(1.0 / (epoch + 3), epoch)
        study.tell(trial, 1.0)
    report("Optuna + SQLite", "epochs stored", TRIALS * EPOCHS / (time.monotonic() - began), "epochs/s",
           "SQLite's default: every commit synced", "one value an epoch; pelab stores eight")
    fresh = optuna.load_study(storage=url, study_name="bench")  # without what the writer has cached
    began = time.monotonic()
    values = sum(len(trial.intermediate_values) for trial in fresh.trials)
    seconds = time.monotonic() - began
    assert values == TRIALS * EPOCHS
    report("Optuna + SQLite", "all curves read", values / seconds, "epochs/s", "", "one value an epoch; pelab reads ten")
