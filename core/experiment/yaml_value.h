// Reads values from a YAML node, and collects violations. For readers of documents: sweeps, and
// claim sheets.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/catalog/catalog.h"
#include "core/experiment/yaml_tree.h"

namespace pelab::experiment {

// A place in the document, for violations.
struct Place {
  int line = 0;  // 0: on the command line
  int column = 0;
  std::string path;
};

inline constexpr std::size_t kMaxViolations = 100;

// Collects violations: each one once, at most kMaxViolations.
class Violations {
 public:
  void Add(const Place& place, std::string value, std::string allowed, std::string message);
  void Add(Violation violation);
  bool empty() const { return violations_.empty(); }
  bool full() const { return violations_.size() >= kMaxViolations; }
  // In document order; violations of the command line come last.
  std::vector<Violation> TakeSorted();

 private:
  std::vector<Violation> violations_;
  std::set<std::tuple<int, int, std::string, std::string>> seen_;
};

// A finite number; an integer of 64 bits. nullopt for any other node, and for text in quotes.
std::optional<double> ReadReal(const YamlNode& node);
std::optional<std::int64_t> ReadInteger(const YamlNode& node);

// The value, if the node has the field's type and lies in its range. Sorts a set of choices in the
// order of its field's choices, and a set of integers in ascending order.
std::optional<catalog::Value> ReadYamlValue(const catalog::Field& field, const YamlNode& node);
// Whether the node can only be one value of the field, not a list of values. One value of a set is
// itself a list, so only a list of lists means several sets.
bool IsOneValue(const catalog::Field& field, const YamlNode& node);

// How to request an analysis with each of the values that `node` lists for its field: 'list
// head_ablation once for each value: analyses: [{name: head_ablation, method: zero}, …]'.
std::string OncePerValue(const catalog::Field& field, const YamlNode& node);

// 'model.mask must be one of causal, none, not "causl"; did you mean causal?'
std::string MustBe(const catalog::Field& field, const YamlNode& node);

// 'unknown pe "alibbi"; did you mean alibi? known: absolute, alibi, …', with the known names
// sorted.
std::string UnknownName(std::string_view kind, std::string_view shown, std::string_view word,
                        std::vector<std::string_view> known);
// "absolute, alibi, nope": the names sorted and joined.
std::string SortedList(std::vector<std::string_view> names);

}  // namespace pelab::experiment
