// The analyses that this trainer can run on a trained model. A test holds the table against the catalog.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

// What an analysis is run on.
struct AnalysisSubject {
  const experiment::Job& job;
  const Decoder& decoder;
  const DeviceData& data;
};

struct AnalysisEntry {
  std::string_view name;
  int version;
  // Whether its result goes out as members of an event of the analysis's own name; else as an `analysis` event that
  // names a file.
  bool own_event;
  // Throws TrainerError(kBadSpec) for parameters that this trainer does not know or that do not suit the job; before
  // anything is trained.
  void (*check)(const experiment::Analysis&, const experiment::Job&);
  // The result's members, but for `version`, `parameters` and `seconds`. Throws Stopped.
  nlohmann::ordered_json (*run)(const experiment::Analysis&, const AnalysisSubject&);
};

const std::vector<AnalysisEntry>& AnalysisRegistry();

// Throws TrainerError(kBadSpec) for a name or version that is not in the table.
const AnalysisEntry& FindAnalysis(const experiment::Analysis& analysis);

}  // namespace pelab::trainer
