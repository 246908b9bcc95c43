// The list of all constraints, and how messages name them.
#include <utility>

#include "core/catalog/tables.h"

namespace pelab::catalog {

const std::vector<Constraint>& Constraints() {
  static const std::vector<Constraint> constraints = [] {
    std::vector<Constraint> all;
    for (auto* group : {ModelConstraints, TaskConstraints, SizeConstraints}) {
      for (Constraint& constraint : group()) all.push_back(std::move(constraint));
    }
    return all;
  }();
  return constraints;
}

std::string InConstraint(std::string_view words, std::string_view constraint) {
  return std::string(words) + " (constraint " + std::string(constraint) + ")";
}

std::string WhyNoField(std::string_view pe, std::string_view field) {
  if (pe != "mla" || FindField(field, pe) != nullptr) return "";
  for (const std::string_view with_bias : {"relative", "shaw", "alibi"}) {
    if (FindField(field, with_bias) == nullptr) continue;
    return InConstraint(
        "the logits of mla are a content and a rotary part, with no bias or table of distances "
        "added; write pe: " +
            std::string(with_bias) + " for one",
        "mla-no-bias");
  }
  return "";
}

}  // namespace pelab::catalog
