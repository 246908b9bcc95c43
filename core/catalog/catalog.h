// The catalog: every positional encoding (PE), task, protocol, field and analysis that pelab knows,
// each with its type, range, default, constraints, version and one line of help. It is plain data.
// Parsing, validation, defaults, the canonical form, `pelab catalog` and the documentation use it;
// a test compares the trainer's own registries with it.
//
// Standard library only; parses as C++17. All tables are constants: every function is thread-safe,
// and returned references live for the whole program.
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

// Token ids 0 (padding) to 4 are reserved; words are the ids from here to task.vocabulary - 1.
inline constexpr std::int64_t kFirstWord = 5;

// Limits on what one job may ask for, so that no document can make a program allocate without
// bound.
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
  kText,       // text that its field accepts
};
std::string_view FieldTypeName(FieldType type);

// A resolved value of a field: int64 for kInt, double (finite) for kReal, a string for kChoice and
// kText.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>,
                           std::vector<std::int64_t>>;
// The value as a person would write it: "causal", "6", "0.00001", "[attention, output]", "[0, 5]".
std::string ToText(const Value& value);
// A finite double as ECMAScript's Number::toString writes it, which RFC 8785 requires: 1e-8,
// 0.00001, 10000.
std::string NumberToText(double number);

// Resolved values by full field name, for example "model.d_model". If a function below takes the
// values resolved so far, they also contain the job's coordinates "pe" and "task" (strings) and
// "seed" (an integer).
using Values = std::map<std::string, Value, std::less<>>;

// One default of a field, for a protocol, a PE and a task; "" matches any.
struct DefaultRule {
  std::string_view protocol;
  std::string_view pe;
  std::string_view task;
  Value value;
};

// A condition under which a field exists: an earlier field has a certain value, or one of two. For
// example, pe.buckets exists if pe.form is t5. Otherwise the field is absent from the job and its
// canonical form, and setting it is an error. With `unless`, the field exists if the earlier field
// has another value or is absent.
struct Condition {
  std::string_view field;
  std::string_view choice;
  bool unless = false;
  std::string_view or_choice = {};

  bool Names(std::string_view value) const {
    return value == choice || (!or_choice.empty() && value == or_choice);
  }
  std::string ToText() const;  // "pe.form is t5", "task.split is held_out_cells or held_out_starts"
};

struct Field {
  std::string_view name;  // full: "train.lr", "pe.base", "task.length", "head_ablation.method"
  // "" for every job; otherwise the PE, task or analysis that has this field. Fields with the same
  // name and different owners have the same type.
  std::string_view owner;
  FieldType type;
  double min = 0;  // inclusive range of kInt, kReal and the members of a kIntSet
  double max = 0;
  bool min_exclusive = false;  // kReal only
  bool max_exclusive = false;
  std::vector<std::string_view> choices;
  bool (*accepts)(std::string_view) = nullptr;  // kText only
  std::string_view rule;                        // kText only: what it accepts, in words
  std::vector<DefaultRule> defaults;  // the first matching rule wins; the last rule matches all
  Value (*derived_default)(const Values&) =
      nullptr;  // used instead of `defaults` if set; sees earlier fields
  std::optional<Condition> applies_when;
  bool of_generated = false;  // exists only if pelab generates the task's examples
  // A job has its protocol's name only if all switches match it, else "custom".
  bool is_switch = false;
  std::optional<Value> legacy;  // if the field has this value, the canonical form omits it
  std::string_view unit;        // "" or "tokens", "fraction", …
  std::string_view help;        // one line
};

struct Entry {  // a PE, task, protocol or analysis
  std::string_view name;
  int version;              // part of the key of every spec that uses it (protocols have none: 0)
  std::string_view help;    // one line
  std::string_view source;  // paper and section
  // For a PE: whether it treats the heads of a layer differently, so that head 2 of one seed is
  // comparable with head 2 of another (heads.h).
  bool heads_differ = false;
  // For a PE: why it needs model.mask "causal"; empty if it accepts any mask.
  std::string_view causal_because;
};

// A rule over several fields, for example "model.d_model must be divisible by model.heads".
struct Constraint {
  std::string_view name;
  std::string_view
      field;  // the field that an error names; the error points to its place in the document
  std::vector<std::string_view>
      others;  // the error points to the first of these that is set, if `field` is not set
  // Empty if the rule holds, or if the job lacks one of the fields. Otherwise describes what
  // `field` must be, with the deciding values: "a multiple of model.heads (16)".
  std::string (*check)(const Values&);
  std::string_view help;  // one line, for the documentation
};

const std::vector<Entry>& Pes();  // those that pelab brings
// The PE whose methods come from a file (core/experiment/own_encoding.h). It is not among Pes().
const Entry& OwnPe();
const std::vector<Entry>& Tasks();  // those that pelab generates
// The task whose examples come from a file (core/experiment/own_task.h). It is not among Tasks().
const Entry& OwnTask();
// Pes() and OwnPe(), Tasks() and OwnTask().
const std::vector<Entry>& PesAndOwn();
const std::vector<Entry>& TasksAndOwn();
const std::vector<Entry>& Protocols();
const std::vector<Entry>& Analyses();
const std::vector<Field>& Fields();  // in the order of resolution; "seed" is not a field
const std::vector<Constraint>& Constraints();

const Entry* FindPe(std::string_view name);    // among Pes(), or OwnPe()
const Entry* FindTask(std::string_view name);  // among Tasks(), or OwnTask()
const Entry* FindProtocol(std::string_view name);
const Entry* FindAnalysis(std::string_view name);
bool IsAnalysisField(const Field& field);  // a parameter of an analysis, not of training
// The field with that full name that belongs to `owner` (the name of a PE, task or analysis) or to
// every job; null if there is none.
const Field* FindField(std::string_view name, std::string_view owner);

// Whether the field is one of every job, of this PE or of this task. (A PE and a task may have the
// same name.)
bool IsOf(const Field& field, std::string_view pe, std::string_view task);
// Whether a job of this PE and task, with the values resolved so far, has this field.
bool Applies(const Field& field, std::string_view pe, std::string_view task,
             const Values& resolved);

// The field's default in this context; `resolved` holds the values of all fields that come before
// this field in Fields().
Value DefaultOf(const Field& field, std::string_view protocol, std::string_view pe,
                std::string_view task, const Values& resolved);

// Empty if `value` has the field's type and lies in its range; otherwise describes the allowed
// values.
std::string CheckValue(const Field& field, const Value& value);
// Describes the allowed values: "an integer from 1 to 64", "one of causal, none", "a number above 0
// and at most 1".
std::string Allowed(const Field& field);

// "must be even (constraint even-width)": every message names its constraint in this form.
std::string InConstraint(std::string_view words, std::string_view constraint);
// Explains why this PE lacks the field of that full name although other PEs have it, and names the
// constraint. Empty if there is no particular reason.
std::string WhyNoField(std::string_view pe, std::string_view field);

// The first protocol that gives this PE and task the values in `resolved`, or "custom" if none
// does. Only the fields that decide the label are compared (DecidesLabel).
std::string ProtocolLabel(std::string_view pe, std::string_view task, const Values& resolved);

// The nearest of `known` to `word` by edit distance. "" if the word has more than 64 letters, or if
// the nearest needs more edits than a third of the number of the word's letters (1 edit is always
// allowed).
std::string_view DidYouMean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace pelab::catalog
