#include "tests/sim/ledger_rules.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace pelab::sim {
namespace {

bool IsLoss(double value) { return std::isfinite(value) && value >= 0; }
bool IsTime(double seconds) { return seconds >= 0 && seconds <= 1e9; }
bool IsScore(std::int64_t correct, std::int64_t total, const JobRules& job) {
  return total == job.shape.examples && correct >= 0 && correct <= total;
}

std::string Broken(const v1::Started& started, const JobRules& job) {
  if (started.epochs() != job.epochs) return "it has another number of epochs than the job";
  if (started.start_epoch() < 0 || started.start_epoch() > job.epochs) return "its start";
  if (!started.has_execution()) return "";
  const v1::Execution& execution = started.execution();
  const bool possible = execution.threads() >= 1 && execution.threads() <= 1024 &&
                        execution.micro_batch() >= 0 && execution.packing() >= 1 &&
                        execution.packing() <= 64;
  return possible ? "" : "its execution";
}

std::string Broken(const v1::Epoch& epoch, const JobRules& job) {
  if (job.analyses_only) return "it is an epoch of a job that is trained";
  if (epoch.epoch() != job.epochs_done || epoch.epoch() >= job.epochs) return "its number";
  if (!IsLoss(epoch.train_loss()) || !IsLoss(epoch.test_loss())) return "its losses";
  if (!IsScore(epoch.train_correct(), epoch.train_total(), job)) return "its training score";
  if (!IsScore(epoch.test_correct(), epoch.test_total(), job)) return "its test score";
  if (!IsLoss(epoch.learning_rate()) || !IsTime(epoch.seconds())) return "its rate or its time";
  return "";
}

bool IsEntry(const v1::HeadAblation& matrix, int head, const JobRules& job) {
  const std::int64_t intact = matrix.intact_correct();
  return matrix.lost(head) >= 0 && matrix.lost(head) <= intact && matrix.gained(head) >= 0 &&
         matrix.gained(head) <= job.shape.examples - intact &&
         matrix.correct(head) == intact - matrix.lost(head) + matrix.gained(head) &&
         IsLoss(matrix.nll(head)) && IsLoss(matrix.nll_standard_error(head));
}

std::string Broken(const v1::HeadAblation& matrix, const JobRules& job) {
  if (job.asked.count(
          NameOfAnalysis("head_ablation", matrix.version(), matrix.parameters_json())) == 0) {
    return "nobody asked for it";
  }
  if (matrix.layers() != job.shape.layers || matrix.heads() != job.shape.heads) return "its shape";
  const int entries = job.shape.layers * job.shape.heads;
  for (const int size : {matrix.correct_size(), matrix.lost_size(), matrix.gained_size(),
                         matrix.nll_size(), matrix.nll_standard_error_size()}) {
    if (size != entries) return "its entries";
  }
  if (matrix.missing_size() != 0 && matrix.missing_size() != entries) return "its missing entries";
  if (!IsScore(matrix.intact_correct(), matrix.total(), job) || !IsLoss(matrix.intact_nll()) ||
      !(matrix.chance() > 0 && matrix.chance() <= 1) || !IsTime(matrix.seconds())) {
    return "the values of its intact model";
  }
  for (int head = 0; head < entries; ++head) {
    const bool missing = matrix.missing_size() != 0 && matrix.missing(head);
    if (!missing && !IsEntry(matrix, head, job)) return absl::StrCat("its entry ", head);
  }
  return "";
}

std::string Broken(const v1::AnalysisResult& result, const JobRules& job) {
  if (job.asked.count(NameOfAnalysis(result.name(), result.version(), result.parameters_json())) ==
      0) {
    return "nobody asked for it";
  }
  return nlohmann::json::accept(result.result_json()) ? "" : "it is not JSON";
}

bool IsHash(const std::string& sha256) {
  return sha256.size() == 64 && sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string Broken(const v1::Artifact& file, const JobRules& job) {
  const std::string& name = file.name();
  if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) return "its name";
  return IsHash(file.sha256()) && file.bytes() == job.shape.weights_bytes ? "" : "its file";
}

std::string Broken(const v1::Checkpoint& checkpoint, const JobRules& job) {
  if (checkpoint.epoch() < 0 || checkpoint.epoch() > job.epochs_done) return "its epoch";
  return IsHash(checkpoint.sha256()) ? "" : "its file";
}

std::string Broken(const v1::Finished& finished) {
  switch (finished.outcome()) {
    case v1::ATTEMPT_OUTCOME_SUCCEEDED:
    case v1::ATTEMPT_OUTCOME_FAILED:
    case v1::ATTEMPT_OUTCOME_PREEMPTED:
    case v1::ATTEMPT_OUTCOME_CANCELLED:
      return IsTime(finished.wall_seconds()) ? "" : "its time";
    default:
      return "its outcome";
  }
}

}  // namespace

std::string NameOfAnalysis(const std::string& name, int version, const std::string& parameters) {
  return absl::StrCat(name, " ", version, " ", parameters);
}

std::string BrokenRule(const v1::Event& event, const JobRules& job) {
  switch (event.body_case()) {
    case v1::Event::kStarted:
      return Broken(event.started(), job);
    case v1::Event::kEpoch:
      return Broken(event.epoch(), job);
    case v1::Event::kHeadAblation:
      return Broken(event.head_ablation(), job);
    case v1::Event::kAnalysis:
      return Broken(event.analysis(), job);
    case v1::Event::kArtifact:
      return Broken(event.artifact(), job);
    case v1::Event::kCheckpoint:
      return Broken(event.checkpoint(), job);
    case v1::Event::kFinished:
      return Broken(event.finished());
    case v1::Event::BODY_NOT_SET:
      break;
  }
  return "it has no body";
}

}  // namespace pelab::sim
