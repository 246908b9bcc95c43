// The catalog: every positional encoding (PE), task, protocol, field and analysis that pelab knows,
// with types, ranges, defaults, constraints, versions and one line of help each. It is plain data
// and drives parsing, validation, defaults, canonical form, `pelab catalog` and the documentation;
// the trainer's own registries are held against it by a test.
//
// Standard library only; parses as C++17. All tables are constants: every function is thread-safe
// and returns references that live for the whole program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pelab::catalog {

// The version of the canonical form itself (docs/formats.md, "Canonical spec").
inline constexpr std::int64_t kCanonicalFormat = 1;

// Token ids 0 (padding) to 4 are set apart; words are the ids from here to task.vocabulary - 1.
inline constexpr std::int64_t kFirstWord = 5;

// Bounds on what one job may ask for, so that no document can make a program allocate without
// limit.
inline constexpr std::int64_t kMaxDataBytes = std::int64_t{64} << 30;  // examples x length x 4
inline constexpr std::int64_t kMaxStateBytes =
    std::int64_t{64} << 30;  // parameters x 16 (weight, gradient, 2 moments)
inline constexpr std::int64_t kMaxStepBytes = std::int64_t{1}
                                              << 40;  // activations that one training step keeps

enum class FieldType {
  kBool,
  kInt,
  kReal,
  kChoice,     // one of `choices`
  kChoiceSet,  // a subset of `choices`, kept in the order of `choices`
  kIntSet,     // distinct integers, ascending
};
std::string_view FieldTypeName(FieldType type);

// A resolved value of a field. kInt is int64, kReal is double (finite), kChoice is a string.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>,
                           std::vector<std::int64_t>>;
// As a person would write it: "causal", "6", "0.00001", "[attention, output]", "[0, 5]".
std::string ToText(const Value& value);
// A finite double as ECMAScript's Number::toString writes it, which is what RFC 8785 asks for:
// 1e-8, 0.00001, 10000.
std::string NumberToText(double number);

// Resolved values by full field name, for example "model.d_model". Where a function below takes the
// values resolved so far, they also hold the job's own coordinates as "pe" and "task" (strings) and
// "seed" (an integer).
using Values = std::map<std::string, Value, std::less<>>;

// What a default may depend on: the protocol's name, the PE's and the task's; "" in a rule matches
// any.
struct DefaultRule {
  std::string_view protocol;
  std::string_view pe;
  std::string_view task;
  Value value;
};

// A field that has a meaning only where an earlier field has a certain value, for example
// pe.buckets where pe.form is t5. Elsewhere it is absent from the job and its canonical form, and
// setting it is an error.
struct Condition {
  std::string_view field;
  std::string_view choice;
};

struct Field {
  std::string_view name;   // full: "train.lr", "pe.base", "task.length", "head_ablation.method"
  std::string_view owner;  // "" for every job; else the PE, task or analysis that has this field.
                           // Fields of one name and several owners have one type
  FieldType type;
  double min = 0;  // kInt, kReal and the members of a kIntSet: inclusive range
  double max = 0;
  bool min_exclusive = false;  // kReal only
  bool max_exclusive = false;
  std::vector<std::string_view> choices;
  std::vector<DefaultRule> defaults;  // the first rule that matches wins; the last one matches all
  Value (*derived_default)(const Values&) =
      nullptr;  // used instead of `defaults` where set; sees earlier fields
  std::optional<Condition> applies_when;
  bool is_switch = false;       // decides whether a job carries its protocol's name or "custom"
  std::optional<Value> legacy;  // at this value the field is left out of the canonical form
  std::string_view unit;        // "" or "tokens", "fraction", …
  std::string_view help;        // one line
};

struct Entry {  // a PE, task, protocol or analysis
  std::string_view name;
  int version;              // enters the key of every spec that uses it (protocols have none: 0)
  std::string_view help;    // one line
  std::string_view source;  // paper and section
};

// A rule over several fields, for example "model.d_model must be divisible by model.heads".
struct Constraint {
  std::string_view name;
  std::string_view
      field;  // the field that an error names, and whose place in the document it points at
  std::vector<std::string_view>
      others;  // where the document does not set `field`, the first of these that it sets
  // Empty when satisfied, or when the job lacks one of the fields; else what `field` must be, in
  // words, with the values that decide it: "a multiple of model.heads (16)".
  std::string (*check)(const Values&);
  std::string_view help;  // one line, for the documentation
};

const std::vector<Entry>& Pes();
const std::vector<Entry>& Tasks();
const std::vector<Entry>& Protocols();
const std::vector<Entry>& Analyses();
const std::vector<Field>& Fields();  // in the order of resolution: "seed" is not a field
const std::vector<Constraint>& Constraints();

const Entry* FindPe(std::string_view name);
const Entry* FindTask(std::string_view name);
const Entry* FindProtocol(std::string_view name);
const Entry* FindAnalysis(std::string_view name);
bool IsAnalysisField(const Field& field);  // a setting of an analysis, not of training
// The field of that full name that belongs to `owner` (a PE's, task's or analysis's name) or to
// every job; null if none.
const Field* FindField(std::string_view name, std::string_view owner);

// Whether a job of this PE and task, with the values resolved so far, has this field.
bool Applies(const Field& field, std::string_view pe, std::string_view task,
             const Values& resolved);

// The field's default in this context; `resolved` holds the fields before it in Fields().
Value DefaultOf(const Field& field, std::string_view protocol, std::string_view pe,
                std::string_view task, const Values& resolved);

// Empty if `value` has the field's type and lies in its range; else what is allowed, in words.
std::string CheckValue(const Field& field, const Value& value);
// What the field allows, in words: "an integer from 1 to 64", "one of causal, none", "a number
// above 0 and at most 1".
std::string Allowed(const Field& field);

// "must be even (constraint even-width)": how every message says which rule it comes from.
std::string InConstraint(std::string_view words, std::string_view constraint);
// Why this PE has no field of that full name although others have, where there is more to say than
// that it has none; it names the constraint. Else empty.
std::string WhyNoField(std::string_view pe, std::string_view field);

// The protocol whose switches all have the values in `resolved` for this PE and task, or "custom".
std::string ProtocolLabel(std::string_view pe, std::string_view task, const Values& resolved);

// The nearest of `known` to `word` by edit distance, or "" when nothing is near (more than a third
// of its letters).
std::string_view DidYouMean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace pelab::catalog
