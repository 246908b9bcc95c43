#include "client/export/tables.h"

#include "core/base/strings.h"

namespace pelab::client {

std::vector<std::string> ExportTable::Names() const {
  std::vector<std::string> names;
  for (const ExportColumn& column : columns) names.push_back(column.name);
  return names;
}

ExportTable JobsTable(const std::vector<std::string>& fields) {
  ExportTable table{
      "jobs.csv",
      "one training: a positional encoding, a task, a seed and every other setting; by job_id",
      {{"job_id", "number of the job; the other tables refer to it"},
       {"key", "SHA-256 of the job's spec in specs.jsonl: equal for equal settings, everywhere"},
       {"generation", "1, or more where the same settings were trained again on purpose"},
       {"pe", "positional encoding"},
       {"pe_label", "the same with the parameters that depart from the protocol's"},
       {"task", "task that is learnt"},
       {"protocol", "named set of settings that the job has, or custom"},
       {"seed", "seed of all its random numbers"},
       {"state", "succeeded, failed, cancelled, or not ended: queued, assigned, running"},
       {"attempts", "how often it was tried"},
       {"device", "device of the last attempt"},
       {"epochs", "epochs that were asked for"},
       {"epochs_done", "epochs that are stored"},
       {"train_accuracy",
        "fraction 0 to 1, of the last epoch; the running mean over the epoch in training mode"},
       {"test_accuracy", "fraction 0 to 1, of the last epoch"},
       {"best_test_accuracy", "fraction 0 to 1, the largest over the epochs"},
       {"wall_seconds", "seconds that the training took"},
       {"error", "why it failed"},
       {"train_correct", "examples behind train_accuracy that were right"},
       {"train_total", "examples behind train_accuracy"},
       {"test_correct", "examples behind test_accuracy that were right"},
       {"test_total", "examples behind test_accuracy"},
       {"train_eval_accuracy",
        "fraction 0 to 1, after the last epoch, of a sample of the training examples, without "
        "dropout"},
       {"train_eval_correct", "examples behind train_eval_accuracy that were right"},
       {"train_eval_total", "examples behind train_eval_accuracy"},
       {"trained", "true once training is done: then its results stay"},
       {"train_loss", "mean cross-entropy in nats, of the last epoch, in training mode"},
       {"test_loss", "mean cross-entropy in nats, of the last epoch"},
       {"diverged", "true where both of these losses are clearly above that of guessing"}}};
  for (const std::string& field : fields) {
    table.columns.push_back({field, "field of the spec in which jobs differ"});
  }
  return table;
}

ExportTable SummaryTable(const std::vector<std::string>& cells) {
  ExportTable table{"summary.csv",
                    "one cell: the jobs that differ in nothing but their seed; in the order of "
                    "their first job",
                    {}};
  for (const std::string& name : cells) {
    table.columns.push_back({name, name == "pe"     ? "positional encoding, as pe_label of jobs.csv"
                                   : name == "task" ? "task"
                                   : name == "protocol"
                                       ? "protocol"
                                       : "field of the spec in which cells differ"});
  }
  for (const ExportColumn& column : std::vector<ExportColumn>{
           {"metric", "what the mean is of: test_accuracy, of the last epoch"},
           {"n", "trained jobs, over which the mean goes"},
           {"missing", "jobs that have not ended"},
           {"failed", "jobs that failed"},
           {"complete", "true where nothing is missing, failed or cancelled"},
           {"mean", "mean over the n jobs"},
           {"sd", "standard deviation of the sample (n - 1); empty for n below 2"},
           {"half_width",
            "of the 95 % interval: Student's t with n - 1 degrees of freedom; empty for n below 2"},
           {"seeds", "seeds of all jobs of the cell, as a JSON array"},
           {"cancelled", "jobs that were cancelled"},
           {"diverged", "jobs that diverged, as in jobs.csv"}}) {
    table.columns.push_back(column);
  }
  return table;
}

ExportTable CurvesTable() {
  return {"curves.csv",
          "one epoch of one job; by job_id and epoch",
          {{"job_id", "job of jobs.csv"},
           {"epoch", "epoch, from 0"},
           {"train_loss", "mean cross-entropy in nats, in training mode"},
           {"train_accuracy", "fraction 0 to 1, the running mean in training mode"},
           {"test_loss", "mean cross-entropy in nats"},
           {"test_accuracy", "fraction 0 to 1"},
           {"learning_rate", "of the epoch's last step"},
           {"seconds", "seconds that the epoch took"},
           {"train_correct", "training examples that were right"},
           {"train_total", "training examples"},
           {"test_correct", "test examples that were right"},
           {"test_total", "test examples"},
           {"train_eval_accuracy",
            "fraction 0 to 1, of a sample of the training examples, without dropout"},
           {"train_eval_correct", "examples of that sample that were right"},
           {"train_eval_total", "examples of that sample"}}};
}

ExportTable HeadAblationsTable() {
  return {"head_ablations.csv",
          "one attention head (or slice of a latent) that was taken away from a trained model; by "
          "job_id, matrix, layer and head",
          {{"job_id", "job of jobs.csv"},
           {"method", "what takes the head's place: zero, its mean, or resample"},
           {"hygiene", "authors: some heads of earlier layers stay ablated; clean: they do not"},
           {"split", "data that is judged: test, or all"},
           {"layer", "layer, from 0"},
           {"head", "head, from 0"},
           {"correct", "examples that are right without it; empty where there is no such entry"},
           {"total", "examples that are judged"},
           {"accuracy", "fraction 0 to 1 without it"},
           {"accuracy_drop", "fraction: with it minus without it"},
           {"intact_correct", "examples that are right with every head"},
           {"target", "head, or authors: slices of the latents of mla"},
           {"lost", "examples that only the intact model gets right"},
           {"gained", "examples that only the ablated model gets right"},
           {"drop_standard_error", "of accuracy_drop, paired over examples"},
           {"normalised_drop", "accuracy_drop over what the intact model has above chance"},
           {"nll", "mean negative log-likelihood in nats without it"},
           {"nll_drop", "what that is more than the intact model's; positive: worse without it"},
           {"nll_drop_standard_error", "of nll_drop, paired over examples"},
           {"chance", "accuracy of guessing, fraction 0 to 1"},
           {"analysis_id", "row of analyses.csv: one a matrix"},
           {"max_examples", "the analysis's parameter: how many examples it took; 0: all"}}};
}

ExportTable DepositsTable() {
  return {"deposits.csv",
          "how concentrated the drops of a matrix are, in one layer or (layer empty) over all; by "
          "job_id, matrix and layer",
          {{"job_id", "job of jobs.csv"},
           {"method", "as in head_ablations.csv"},
           {"hygiene", "as in head_ablations.csv"},
           {"split", "as in head_ablations.csv"},
           {"target", "as in head_ablations.csv"},
           {"layer", "layer, from 0; empty: over all layers"},
           {"max_drop", "the largest drop, fraction; drops below 3 standard errors count as 0"},
           {"top_share", "the largest drop over the sum of all"},
           {"top_ratio", "the largest drop over the second largest; empty where that is 0"},
           {"gini", "Gini coefficient of the drops, 0 to 1"},
           {"effective_heads", "1 over the sum of squared shares"},
           {"top_layer", "layer of the largest drop"},
           {"top_head", "head of the largest drop"},
           {"deposit", "of a layer: whether one head carries it"},
           {"deposits", "over all layers: how many have a deposit"},
           {"analysis_id", "row of analyses.csv: one a matrix"}}};
}

ExportTable AnalysesTable() {
  return {"analyses.csv",
          "one analysis of a trained model; by job_id and analysis_id",
          {{"job_id", "job of jobs.csv"},
           {"name", "kind of analysis"},
           {"version", "version of how it is computed"},
           {"parameters", "its parameters, JSON"},
           {"total", "examples that are judged"},
           {"intact_correct", "examples that the intact model gets right"},
           {"seconds", "seconds that it took"},
           {"created_at_ms", "when it was stored, Unix time in milliseconds"},
           {"analysis_id", "number of the analysis"},
           {"result", "its result, JSON; empty for head_ablation, which has head_ablations.csv"}}};
}

ExportTable AttemptsTable() {
  return {"attempts.csv",
          "one time that a job was tried; by job_id and number",
          {{"attempt_id", "number of the attempt"},
           {"job_id", "job of jobs.csv"},
           {"number", "which try of the job, from 1"},
           {"worker", "identity of the worker's daemon"},
           {"device", "cpu, or cuda: and a number of the worker's"},
           {"start_epoch", "epoch at which it began; above 0: it went on from a checkpoint"},
           {"outcome",
            "succeeded, failed, lost, preempted, cancelled, superseded; empty while it runs"},
           {"error", "what went wrong"},
           {"started_at_ms", "Unix time in milliseconds"},
           {"ended_at_ms", "Unix time in milliseconds; empty while it runs"},
           {"environment",
            "what the trainer said of itself, JSON: versions, device, threads, "
            "number of parameters, hash of the data"},
           {"energy_joules",
            "energy of its GPU; attempts that had it at the same time share it in equal parts; "
            "empty if it was not measured"}}};
}

}  // namespace pelab::client
