#include "worker/trainer/analysis/registry.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "worker/trainer/analysis/cumulative_ablation.h"
#include "worker/trainer/analysis/example_correctness.h"
#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/analysis/layer_ablation.h"
#include "worker/trainer/analysis/split_accuracy.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t DataSeed(const AnalysisSubject& subject) {
  // Data from a file has no seed.
  const bool generated = subject.job.HasField("task.data_seed");
  return generated ? subject.job.Int("task.data_seed") : subject.job.seed;
}

// {"total", "intact_correct", "intact_nll", "chance"}.
Json IntactMembers(const IntactScore& intact, const AnalysisSubject& subject) {
  return {{"total", intact.total},
          {"intact_correct", intact.correct},
          {"intact_nll", intact.nll},
          {"chance", experiment::ChanceAccuracy(subject.job)}};
}

// Picks one member of every score, in the shape of the scores; null if there is no score.
template <typename Member>
Json Pick(const std::optional<PairedScore>& score, Member PairedScore::*member) {
  return score ? Json(*score.*member) : Json();
}
template <typename Scores, typename Member>
Json Pick(const std::vector<Scores>& scores, Member PairedScore::*member) {
  Json picked = Json::array();
  for (const Scores& score : scores) picked.push_back(Pick(score, member));
  return picked;
}

template <typename Scores>
void AddScores(const Scores& scores, Json* members) {
  (*members)["correct"] = Pick(scores, &PairedScore::correct);
  (*members)["lost"] = Pick(scores, &PairedScore::lost);
  (*members)["gained"] = Pick(scores, &PairedScore::gained);
  (*members)["nll"] = Pick(scores, &PairedScore::nll);
  (*members)["nll_standard_error"] = Pick(scores, &PairedScore::nll_standard_error);
}

Json RunHeadAblation(const experiment::Analysis& analysis, const AnalysisSubject& subject) {
  const HeadAblationResult result = AblateHeads(subject.decoder, subject.data, DataSeed(subject),
                                                HeadAblationOptionsFrom(analysis));
  Json members = IntactMembers(result.intact, subject);
  AddScores(result.entries, &members);
  return members;
}

Json RunLayerAblation(const experiment::Analysis& analysis, const AnalysisSubject& subject) {
  const LayerAblationResult result = AblateLayers(subject.decoder, subject.data, DataSeed(subject),
                                                  LayerAblationOptionsFrom(analysis));
  Json members = IntactMembers(result.intact, subject);
  AddScores(result.layers, &members);
  return members;
}

Json CurveJson(const RemovalCurve& curve) {
  Json heads = Json::array();
  for (const Head& head : curve.heads) heads.push_back({head.layer, head.head});
  return {{"heads", heads}, {"correct", curve.correct}};
}

Json RunCumulativeAblation(const experiment::Analysis& analysis, const AnalysisSubject& subject) {
  const CumulativeAblationResult result = AblateCumulatively(
      subject.decoder, subject.data, DataSeed(subject), CumulativeAblationOptionsFrom(analysis));
  Json members = IntactMembers(result.intact, subject);
  members["greedy"] = CurveJson(result.greedy);
  members["random"] = Json::array();
  for (const RemovalCurve& curve : result.random) members["random"].push_back(CurveJson(curve));
  return members;
}

Json RunExampleCorrectness(const experiment::Analysis& analysis, const AnalysisSubject& subject) {
  const ExampleCorrectness result =
      JudgeExamples(subject.decoder, subject.data, ExampleCorrectnessMaxExamples(analysis));
  Json members = IntactMembers(result.intact, subject);
  members["right"] = result.right;
  return members;
}

Json RunSplitAccuracy(const experiment::Analysis& analysis, const AnalysisSubject& subject) {
  const SplitAccuracy result =
      ScoreSplits(subject.job, subject.decoder, subject.data, SplitAccuracyMaxExamples(analysis));
  const Score& tested = result.splits[result.tested].score;
  Json members = IntactMembers({tested.total, tested.correct, tested.loss}, subject);
  members["splits"] = Json::array();
  for (const SplitScore& split : result.splits) {
    members["splits"].push_back({{"name", split.name},
                                 {"total", split.score.total},
                                 {"correct", split.score.correct},
                                 {"nll", split.score.loss},
                                 {"chance", split.chance}});
  }
  return members;
}

void CheckNothing(const experiment::Analysis&, const experiment::Job&) {}

void CheckHeadAblation(const experiment::Analysis& analysis, const experiment::Job& job) {
  CheckMethod(HeadAblationOptionsFrom(analysis).method, job);
}

void CheckLayerAblation(const experiment::Analysis& analysis, const experiment::Job& job) {
  CheckMethod(LayerAblationOptionsFrom(analysis).method, job);
}

void CheckCumulativeAblation(const experiment::Analysis& analysis, const experiment::Job& job) {
  const CumulativeAblationOptions options = CumulativeAblationOptionsFrom(analysis);
  CheckMethod(options.method, job);
  CheckRemovals(options, job);
}

}  // namespace

const std::vector<AnalysisEntry>& AnalysisRegistry() {
  static const auto* const table = new std::vector<AnalysisEntry>{
      {"head_ablation", 2, true, CheckHeadAblation, RunHeadAblation},
      {"layer_ablation", 1, false, CheckLayerAblation, RunLayerAblation},
      {"cumulative_ablation", 1, false, CheckCumulativeAblation, RunCumulativeAblation},
      {"example_correctness", 1, false, CheckNothing, RunExampleCorrectness},
      {"split_accuracy", 1, false, CheckNothing, RunSplitAccuracy},
  };
  return *table;
}

const AnalysisEntry& FindAnalysis(const experiment::Analysis& analysis) {
  std::string known;
  for (const AnalysisEntry& entry : AnalysisRegistry()) {
    if (entry.name == analysis.name && entry.version == analysis.version) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name) + " version " +
             std::to_string(entry.version);
  }
  throw TrainerError(ErrorKind::kBadSpec, "this trainer has no analysis \"" + analysis.name +
                                              "\" version " + std::to_string(analysis.version) +
                                              "; known: " + known);
}

}  // namespace pelab::trainer
