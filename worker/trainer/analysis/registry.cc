#include "worker/trainer/analysis/registry.h"

#include <nlohmann/json.hpp>
#include <string>

#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

nlohmann::ordered_json RunHeadAblation(const spec::Analysis& analysis, const Decoder& decoder,
                                       const DeviceData& data) {
  const HeadAblationResult result = AblateHeads(decoder, data, HeadAblationOptionsFrom(analysis));
  return {{"total", result.total},
          {"intact_correct", result.intact_correct},
          {"correct", result.correct}};
}

}  // namespace

const std::vector<AnalysisEntry>& AnalysisRegistry() {
  static const auto* const table = new std::vector<AnalysisEntry>{
      {"head_ablation", 1, "head_ablation", RunHeadAblation},
  };
  return *table;
}

const AnalysisEntry& FindAnalysis(const spec::Analysis& analysis) {
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
