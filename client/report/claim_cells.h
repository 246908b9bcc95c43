// Cells as the rules of the paper's claims see them: values by seed, deposit indices by ablation.
// Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "client/report/html_input.h"
#include "core/render/json.h"

namespace pelab::client::report {

using BySeed = std::map<std::int64_t, double>;

// Which head ablation.
struct Ablation {
  std::string method;
  std::string hygiene;
  std::string split;
  std::string target;
  auto operator<=>(const Ablation&) const =
      default;  // NOLINT(modernize-use-nullptr): there is no pointer
};

// A job's deposit indices under one ablation. `defined` is false where accuracy is within 5 standard
// errors of chance: nothing can drop then, and the indices say nothing. Where nothing drops although
// it could, max_drop is 0.
struct Indices {
  bool defined = false;
  double max_drop = 0;
  std::optional<int> top_layer;
  std::set<int> layers;  // that have a deposit
};

struct ClaimCell {
  std::string protocol;
  std::string task;
  std::string pe_label;
  render::Json spec;  // of its first job
  BySeed test;
  BySeed train;
  BySeed gap;    // training less test accuracy
  BySeed speed;  // mean test accuracy over the epochs
  std::map<Ablation, std::map<std::int64_t, Indices>> indices;  // by seed
  // The ablation that the cell's protocol asks for: the authors' for published, else clean heads on
  // test data; of those that are stored the nearest. nullptr where there is none.
  const std::map<std::int64_t, Indices>* OwnIndices() const;
  // The one that sets each head's own output to zero; nullptr where there is none.
  const std::map<std::int64_t, Indices>* TrueHeads() const;

  // A field of the spec, "model.layers"; null where there is none.
  render::Json Field(const std::string& name) const;
};

// The cells of the protocols that have names. One whose label another cell of its task and protocol
// has too is left out, but for partial_rope, which is told by its heads.
std::vector<ClaimCell> ClaimCells(const ReportInput& input);

}  // namespace pelab::client::report
