// Identifies stored analyses of the same kind, so that seeds can be combined. Pure functions:
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "core/base/strings.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

// The kind of an analysis. Two analyses of one variant computed the same thing, whether for one job
// or for two.
struct Variant {
  std::string name;  // "head_ablation"
  int version = 0;
  std::string parameters_json;
};
inline bool operator<(const Variant& a, const Variant& b) {
  return std::tie(a.name, a.version, a.parameters_json) <
         std::tie(b.name, b.version, b.parameters_json);
}

inline bool operator==(const Variant& a, const Variant& b) { return !(a < b) && !(b < a); }

using Variants = std::map<std::int64_t, Variant>;  // by AnalysisRow::analysis_id
Variants VariantsOf(const std::vector<v1::AnalysisRow>& analyses);

// "zero ablation, clean hygiene, test data"; names the version only if it is not the current one.
std::string Describe(const Variant& variant);

// Selects some of the stored head ablations; an empty member matches any.
struct AblationChoice {
  std::string method;
  std::string hygiene;
  std::string split;
  std::string target;
};

// Keeps the rows that match `choice`. INVALID_ARGUMENT if no row has the chosen value of some
// member; the message begins with the member's name ("data" for `split`) and lists the stored
// values. `Row` is v1::HeadAblationRow or v1::DepositRow.
template <typename Row>
absl::Status Choose(const AblationChoice& choice, std::vector<Row>& rows);

// The kind of an analysis other than head ablation, as its parameters name it.
struct AblationKind {
  std::string method;  // "zero", "mean", "resample"; empty: it takes nothing away
  std::string data;    // "test", "all"; empty: it has no choice of data
};
AblationKind KindOf(const v1::AnalysisRow& row);

// The same for such analyses. They have neither a restore policy nor a target, so only the method
// and the data of `choice` count.
absl::Status Choose(const AblationChoice& choice, std::vector<v1::AnalysisRow>& rows);

// The check behind Choose for one column: OK, or an error that lists the `stored` values.
absl::Status CheckChosen(const std::string& name, const std::string& value,
                         const std::vector<std::string>& stored);

template <typename Row>
absl::Status Choose(const AblationChoice& choice, std::vector<Row>& rows) {
  struct Column {
    const char* name;
    const std::string& wanted;
    const std::string& (Row::*of)() const;
  };
  const Column columns[] = {{"method", choice.method, &Row::method},
                            {"hygiene", choice.hygiene, &Row::hygiene},
                            {"data", choice.split, &Row::split},
                            {"target", choice.target, &Row::target}};
  for (const Column& column : columns) {
    if (column.wanted.empty()) continue;
    std::vector<std::string> stored;
    stored.reserve(rows.size());
    for (const Row& row : rows) stored.push_back((row.*column.of)());
    absl::Status status = CheckChosen(column.name, column.wanted, stored);
    if (!status.ok()) return status;
    std::erase_if(rows, [&](const Row& row) { return (row.*column.of)() != column.wanted; });
  }
  return absl::OkStatus();
}

}  // namespace pelab::results
