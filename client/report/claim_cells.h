// Groups in the form that the rules of the paper's claims need: values by seed, deposit indices by
// ablation. Pure functions: thread-safe.
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

// Identifies one kind of head ablation.
struct Ablation {
  std::string method;
  std::string hygiene;
  std::string split;
  std::string target;
  auto operator<=>(const Ablation&) const =
      default;  // NOLINT(modernize-use-nullptr): there is no pointer
};

// A job's deposit indices under one ablation. `defined` is false if the accuracy is within 5
// standard errors of chance: such an accuracy cannot drop, so the indices mean nothing. If the
// accuracy could drop but does not, max_drop is 0.
struct Indices {
  bool defined = false;
  double max_drop = 0;
  std::optional<int> top_layer;
  std::set<int> layers;  // layers with a deposit
};

struct ClaimCell {
  std::string protocol;
  std::string task;
  std::string pe_label;
  render::Json spec;  // of the group's first job
  BySeed test;
  BySeed train;
  BySeed gap;    // training accuracy minus test accuracy
  BySeed speed;  // mean test accuracy over all epochs
  std::map<Ablation, std::map<std::int64_t, Indices>> indices;  // the inner map is by seed
  // The indices under the ablation that the group's protocol asks for: the authors' ablation for
  // `published`, else heads ablated with clean restore on test data. If they are not stored: those
  // under the most similar stored ablation. nullptr if the group has no indices.
  const std::map<std::int64_t, Indices>* OwnIndices() const;
  // The indices under an ablation that sets each head's own output to zero; nullptr if there is
  // none.
  const std::map<std::int64_t, Indices>* TrueHeads() const;

  // A field of the spec, for example "model.layers"; null if the spec has no such field.
  render::Json Field(const std::string& name) const;
};

// The groups whose protocol has a name. If several groups of one task and protocol share a label,
// none of them is returned, except for partial_rope, whose groups are told apart by their heads.
std::vector<ClaimCell> ClaimCells(const ReportInput& input);

}  // namespace pelab::client::report
