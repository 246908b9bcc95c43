// The analyses that this trainer can run on a trained model. A test holds the table against the catalog.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "core/spec/canonical.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct AnalysisEntry {
  std::string_view name;
  int version;
  std::string_view event;  // the event that carries its result
  // The event's members, but for `version`, `parameters` and `seconds`.
  nlohmann::ordered_json (*run)(const spec::Analysis&, const Decoder&, const DeviceData&);
};

const std::vector<AnalysisEntry>& AnalysisRegistry();

// Throws TrainerError(kBadSpec) for a name or version that is not in the table.
const AnalysisEntry& FindAnalysis(const spec::Analysis& analysis);

}  // namespace pelab::trainer
