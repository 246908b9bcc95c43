// The analyses that this trainer can run on a trained model. A test compares this table with the
// catalog.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

// The inputs of an analysis.
struct AnalysisSubject {
  const experiment::Job& job;
  const Decoder& decoder;
  const DeviceData& data;
};

struct AnalysisEntry {
  std::string_view name;
  int version;
  // true: the result is written as members of an event with the analysis's own name. false: it is
  // written to a file that an `analysis` event names.
  bool own_event;
  // Throws TrainerError(kBadSpec) if this trainer does not know a parameter value or the job does
  // not allow it. Called before anything is trained.
  void (*check)(const experiment::Analysis&, const experiment::Job&);
  // Returns the members of the result except `version`, `parameters` and `seconds`. Throws Stopped.
  nlohmann::ordered_json (*run)(const experiment::Analysis&, const AnalysisSubject&);
};

const std::vector<AnalysisEntry>& AnalysisRegistry();

// Throws TrainerError(kBadSpec) if the table does not have this name and version.
const AnalysisEntry& FindAnalysis(const experiment::Analysis& analysis);

}  // namespace pelab::trainer
