#include "core/claims/twins.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/strings.h"

namespace pelab::claims {
namespace {

using Json = nlohmann::json;

Json TermsOf(const Claim& claim) {
  Json cells = Json::array();
  for (const Term& term : claim.cells) {
    cells.push_back(Json::array({term.condition, term.weight}));
  }
  return cells;
}

Json EligibilityOf(const Claim& claim) {
  if (!claim.eligible) return nullptr;
  const Eligibility& eligible = *claim.eligible;
  const Json above = eligible.above ? Json(*eligible.above) : Json(nullptr);
  return Json::array({eligible.metric, above, eligible.by});
}

// A text that is equal for two claims exactly if they state the same.
std::string StatementOf(const Claim& claim) {
  const Layers& layers = claim.layers;
  const Json statement =
      Json::array({static_cast<int>(claim.kind), claim.metric, TermsOf(claim), claim.pairs,
                   claim.low, claim.high, static_cast<int>(layers.which), layers.listed,
                   claim.where, claim.each, EligibilityOf(claim)});
  return statement.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void RefuseTwins(const std::vector<Claim>& claims, experiment::Violations* violations) {
  std::map<std::string, const Claim*> stated;
  for (const Claim& claim : claims) {
    const auto [first, is_new] = stated.emplace(StatementOf(claim), &claim);
    if (is_new) continue;
    const Claim& twin = *first->second;
    violations->Add(
        claim.place, claim.id, "each statement once",
        Concat(claim.place.path, " (", claim.id, ") states exactly what ", twin.place.path, " (",
               twin.id, ", line ", twin.place.line, ") states; a sheet states each claim once"));
  }
}

}  // namespace pelab::claims
