#include "core/db/read/conditions.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "pelab/v1/results.pb.h"

namespace pelab::db {
namespace {

using catalog::FieldType;

enum class Kind { kText, kInteger, kReal, kBool };
struct ColumnType {
  std::string_view name;
  Kind kind;
};
Kind KindOf(const google::protobuf::FieldDescriptor& field) {
  using google::protobuf::FieldDescriptor;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return Kind::kInteger;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Kind::kReal;
    case FieldDescriptor::CPPTYPE_BOOL:
      return Kind::kBool;
    default:
      return Kind::kText;
  }
}

// The columns of v_jobs, except those that are of no use in a condition.
const std::vector<ColumnType>& TypedColumns() {
  static const auto& columns = *new std::vector<ColumnType>([] {
    const std::set<std::string> no_use = {"trained", "spec_json", "configuration_id", "warning"};
    const google::protobuf::Descriptor& row = *v1::JobRow::descriptor();
    std::vector<ColumnType> all;
    for (int i = 0; i < row.field_count(); ++i) {
      const google::protobuf::FieldDescriptor& field = *row.field(i);
      if (!no_use.contains(field.name())) all.push_back({field.name(), KindOf(field)});
    }
    return all;
  }());
  return columns;
}

std::string_view Symbol(Operator op) {
  switch (op) {
    case Operator::kEqual:
      return "=";
    case Operator::kNotEqual:
      return "<>";
    case Operator::kLess:
      return "<";
    case Operator::kLessOrEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterOrEqual:
      return ">=";
    case Operator::kMatches:
      return "~";
    case Operator::kMatchesNot:
      return "!~";
    case Operator::kIn:
      return "in";
  }
  return "";
}

bool IsEquality(Operator op) { return op == Operator::kEqual || op == Operator::kNotEqual; }
bool IsPattern(Operator op) { return op == Operator::kMatches || op == Operator::kMatchesNot; }
bool IsOrdering(Operator op) { return !IsEquality(op) && !IsPattern(op) && op != Operator::kIn; }

// Splits a condition with a list into an equality for each member. Any other condition stays
// single.
std::vector<Condition> Singles(const Condition& c) {
  if (c.op != Operator::kIn) return {c};
  std::vector<Condition> singles;
  for (const std::string& value : c.values) {
    singles.push_back(
        {.field = c.field, .argument = c.argument, .op = Operator::kEqual, .value = value});
  }
  return singles;
}

absl::Status BadValue(const Condition& c, std::string_view wanted) {
  return absl::InvalidArgumentError(
      Concat("condition on ", c.field, ": \"", c.value, "\" is not ", wanted));
}

absl::Status NoOrder(const Condition& c) {
  return absl::InvalidArgumentError(Concat("condition on ", c.field, ": ", Symbol(c.op),
                                           " needs a number; use = or !=, or ~ with a pattern"));
}

absl::Status NoPattern(const Condition& c) {
  return absl::InvalidArgumentError(
      Concat("condition on ", c.field, ": ", Symbol(c.op), " needs a text; use = != < <= > or >="));
}

std::optional<double> ParseReal(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

// NULL satisfies != and no other comparison, because it differs from every value. `values` is the
// length of a list.
std::string ComparisonSql(std::string_view operand, Operator op, std::size_t values = 1) {
  if (op == Operator::kIn) {
    std::string marks = "?";
    for (std::size_t i = 1; i < values; ++i) marks += ", ?";
    return Concat("coalesce(", operand, " IN (", marks, "), 0)");
  }
  if (op == Operator::kEqual) return Concat(operand, " IS ?");
  if (op == Operator::kNotEqual) return Concat(operand, " IS NOT ?");
  if (!IsPattern(op)) return Concat("coalesce(", operand, " ", Symbol(op), " ?, 0)");
  return Concat(op == Operator::kMatches ? "" : "NOT ", "coalesce(", operand, " GLOB ?, 0)");
}

absl::StatusOr<Expression> CompareText(std::string_view operand, const Condition& c) {
  if (IsOrdering(c.op)) return NoOrder(c);
  Expression out{ComparisonSql(operand, c.op, c.values.size()), {}};
  for (const Condition& single : Singles(c)) out.binds.emplace_back(single.value);
  return out;
}

absl::StatusOr<Bind> NumberOf(const Condition& c) {
  if (IsPattern(c.op)) return NoPattern(c);
  if (std::int64_t whole = 0; absl::SimpleAtoi(c.value, &whole)) return Bind(whole);
  if (const auto real = ParseReal(c.value)) return Bind(*real);
  return BadValue(c, "a number");
}

absl::StatusOr<Expression> CompareNumber(std::string_view operand, const Condition& c) {
  Expression out{ComparisonSql(operand, c.op, c.values.size()), {}};
  for (const Condition& single : Singles(c)) {
    absl::StatusOr<Bind> number = NumberOf(single);
    if (!number.ok()) return number.status();
    out.binds.push_back(*std::move(number));
  }
  return out;
}

absl::StatusOr<Expression> CompareBool(std::string_view operand, const Condition& c) {
  if (!IsEquality(c.op) && c.op != Operator::kIn) {
    return absl::InvalidArgumentError(Concat("condition on ", c.field, ": ", Symbol(c.op),
                                             " needs a number; use = or !=, with true or false"));
  }
  Expression out{ComparisonSql(operand, c.op, c.values.size()), {}};
  for (const Condition& single : Singles(c)) {
    const bool is_true = single.value == "true" || single.value == "1";
    const bool is_false = single.value == "false" || single.value == "0";
    if (!is_true && !is_false) return BadValue(single, "true or false");
    out.binds.emplace_back(std::int64_t{is_true ? 1 : 0});
  }
  return out;
}

// The label of own data is own:NAME or own:NAME(test=SPLIT). "own" alone stands for all of them, as
// it does for encodings, whose name has a column of its own.
absl::StatusOr<Expression> CompareTask(const std::string& operand, const Condition& c) {
  const std::string own(catalog::OwnTask().name);
  Condition others = c;
  std::erase(others.values, own);
  const bool any_own = c.op == Operator::kIn ? others.values.size() < c.values.size()
                                             : IsEquality(c.op) && c.value == own;
  if (!any_own) return CompareText(operand, c);
  Condition all_own{.field = c.field, .op = Operator::kMatches, .value = own + ":*"};
  if (c.op == Operator::kNotEqual) all_own.op = Operator::kMatchesNot;
  absl::StatusOr<Expression> out = CompareText(operand, all_own);
  if (!out.ok() || others.values.empty()) return out;
  absl::StatusOr<Expression> listed = CompareText(operand, others);
  if (!listed.ok()) return listed;
  out->sql = Concat(out->sql, " OR ", listed->sql);
  out->binds.insert(out->binds.end(), listed->binds.begin(), listed->binds.end());
  return out;
}

absl::StatusOr<Expression> CompileColumn(const ColumnType& column, const Condition& c) {
  const std::string operand = Concat("j.", column.name);
  if (column.name == "task") return CompareTask(operand, c);
  if (column.kind == Kind::kBool) return CompareBool(operand, c);
  return column.kind == Kind::kText ? CompareText(operand, c) : CompareNumber(operand, c);
}

constexpr std::string_view kGap = "generalisation_gap";
constexpr std::string_view kEpochsTo = "epochs_to";
constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kIndices[] = {"max_drop", "top_share",       "top_ratio",
                                         "gini",     "effective_heads", "deposits"};

// Whether the job's test accuracy was `accuracy` or more in some epoch up to `epoch` (`comparison`
// is "<="), or before it ("<"). With EXISTS, SQLite reads the epochs of one job until it finds one.
// If the query asked for the smallest epoch, SQLite would first index all epochs of all jobs.
Expression ReachedWithin(std::string_view comparison, const Bind& epoch, double accuracy) {
  return {Concat("EXISTS (SELECT 1 FROM v_curves AS c WHERE c.job_id = j.job_id AND c.epoch ",
                 comparison, " ? AND c.test_accuracy >= ?)"),
          {epoch, Bind(accuracy)}};
}

void Append(const Expression& more, Expression& out) {
  out.sql += more.sql;
  out.binds.insert(out.binds.end(), more.binds.begin(), more.binds.end());
}

absl::StatusOr<Expression> CompileEpochsTo(const Condition& c) {
  if (c.op == Operator::kIn) {
    std::vector<Expression> members;
    for (const Condition& single : Singles(c)) {
      absl::StatusOr<Expression> member = CompileEpochsTo(single);
      if (!member.ok()) return member;
      member->sql = Concat("(", member->sql, ")");
      members.push_back(*std::move(member));
    }
    return AnyOf(std::move(members));
  }
  if (!c.argument) {
    return absl::InvalidArgumentError(
        "condition on epochs_to: name the test accuracy, as in epochs_to(0.9) <= 20");
  }
  const absl::StatusOr<Bind> number = NumberOf(c);
  if (!number.ok()) return number.status();
  const bool strict = c.op == Operator::kLess || c.op == Operator::kGreaterOrEqual;
  const bool at_most = c.op == Operator::kLess || c.op == Operator::kLessOrEqual;
  const bool equal = IsEquality(c.op);
  // The best accuracy rules out most jobs that never reached it, without reading their curves.
  Expression out{"coalesce(j.best_test_accuracy >= ?, 0) AND ", {Bind(*c.argument)}};
  if (c.op == Operator::kNotEqual) out.sql = Concat("NOT (", out.sql);
  Append(ReachedWithin(strict ? "<" : "<=", at_most || equal ? *number : Bind(kEver), *c.argument),
         out);
  if (!at_most) {
    out.sql += " AND NOT ";
    Append(ReachedWithin(strict || equal ? "<" : "<=", *number, *c.argument), out);
  }
  if (c.op == Operator::kNotEqual) out.sql += ")";
  return out;
}

absl::StatusOr<Expression> CompileIndex(std::string_view index, const Condition& c) {
  absl::StatusOr<Expression> out = CompareNumber(Concat("d.", index), c);
  if (!out.ok()) return out;
  out->sql = Concat(
      "EXISTS (SELECT 1 FROM v_deposits AS d WHERE d.job_id = j.job_id AND d.layer IS NULL AND ",
      out->sql, ")");
  return out;
}

template <typename Integers>
std::string IntegerList(const Integers& integers) {
  return Concat("[", absl::StrJoin(integers, ","), "]");
}

// The JSON text of a value as the canonical form writes it. Comparing texts makes = exact for
// doubles.
absl::StatusOr<std::string> JsonText(const catalog::Field& field, const Condition& c) {
  switch (field.type) {
    case FieldType::kBool:
      if (c.value == "true" || c.value == "false") return c.value;
      return BadValue(c, "true or false");
    case FieldType::kInt:
    case FieldType::kReal:
      if (const auto real = ParseReal(c.value)) return catalog::NumberToText(*real);
      return BadValue(c, "a number");
    case FieldType::kChoice:
    case FieldType::kText:
      return Concat("\"", c.value, "\"");
    case FieldType::kChoiceSet: {
      const std::vector<std::string> given =
          absl::StrSplit(c.value, absl::ByAnyChar("[],+ "), absl::SkipEmpty());
      std::vector<std::string> kept;  // in the catalog's order, as in the canonical form
      for (std::string_view choice : field.choices) {
        for (const std::string& g : given) {
          if (g == choice) kept.push_back(Concat("\"", choice, "\""));
        }
      }
      if (kept.size() != given.size()) {
        return BadValue(c, Concat("a list out of ", Join(field.choices, "+")));
      }
      return Concat("[", Join(kept, ","), "]");
    }
    case FieldType::kIntSet: {
      std::set<std::int64_t> members;
      for (const absl::string_view text :
           absl::StrSplit(c.value, absl::ByAnyChar("[],+ "), absl::SkipEmpty())) {
        std::int64_t member = 0;
        if (!absl::SimpleAtoi(text, &member) || !members.insert(member).second) {
          return BadValue(c, "a list of different integers, such as 0+5");
        }
      }
      return IntegerList(members);
    }
  }
  return BadValue(c, "a value");
}

std::string JsonOf(const catalog::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Concat("\"", *text, "\"");
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    return list->empty() ? "[]" : Concat("[\"", Join(*list, "\",\""), "\"]");
  }
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return IntegerList(*list);
  return catalog::ToText(value);
}

// SQL for a spec, and SQL for the names of the PE and task whose fields it may have.
struct SpecSource {
  std::string_view spec;
  std::string_view owners;
};
// A stored spec that SQLite cannot parse is treated as having no fields, so that it does not make
// every query fail.
constexpr SpecSource kOfJob = {"iif(json_valid(j.spec_json), j.spec_json, '{}')",
                               "j.pe, iif(j.task GLOB 'own:*', 'own', j.task)"};
constexpr SpecSource kOfConfiguration = {"s.spec",
                                         "s.spec ->> '$.pe.name', s.spec ->> '$.task.name'"};

// The field's JSON text. A field at its legacy value is not stored, so its absence is read as that
// value.
Expression FieldText(const std::vector<const catalog::Field*>& fields, const SpecSource& source) {
  Expression out{Concat("(", source.spec, " -> '$.", fields.front()->name, "')"), {}};
  for (const catalog::Field* f : fields) {
    if (!f->legacy) continue;
    const std::string owner_is = f->owner.empty() ? "? = ''" : Concat("? IN (", source.owners, ")");
    out.sql = Concat("coalesce(", out.sql, ", CASE WHEN ", owner_is, " THEN ? END)");
    out.binds.emplace_back(std::string(f->owner));
    out.binds.emplace_back(JsonOf(*f->legacy));
  }
  return out;
}

absl::StatusOr<Expression> CompareField(const std::vector<const catalog::Field*>& fields,
                                        const Condition& c, const SpecSource& source) {
  const catalog::Field& field = *fields.front();
  const bool numeric = field.type == FieldType::kInt || field.type == FieldType::kReal;
  const Expression text = FieldText(fields, source);
  Expression out;
  const auto append = [&](std::string_view sql, std::vector<Bind> values) {
    out.sql += sql;
    out.binds.insert(out.binds.end(), text.binds.begin(), text.binds.end());
    std::move(values.begin(), values.end(), std::back_inserter(out.binds));
  };
  if (IsPattern(c.op)) {
    if (field.type != FieldType::kChoice && field.type != FieldType::kText) return NoPattern(c);
    append(ComparisonSql(text.sql, c.op), {Concat("\"", c.value, "\"")});
    return out;
  }
  if (IsOrdering(c.op) && !numeric) return NoOrder(c);
  std::vector<Bind> wanted;
  for (const Condition& single : Singles(c)) {
    absl::StatusOr<std::string> json = JsonText(field, single);
    if (!json.ok()) return json.status();
    wanted.emplace_back(*std::move(json));
  }
  if (!IsOrdering(c.op)) {
    const std::string comparison = ComparisonSql(text.sql, c.op, wanted.size());
    append(comparison, std::move(wanted));
    return out;
  }
  // Equality is tested by text, order by number: SQLite's decimal conversion may be off by a bit.
  const bool strict = c.op == Operator::kLess || c.op == Operator::kGreater;
  const bool less = c.op == Operator::kLess || c.op == Operator::kLessOrEqual;
  append(Concat(text.sql, strict ? " IS NOT ? AND " : " IS ? OR "), std::move(wanted));
  append(Concat("coalesce(CAST(", text.sql, " AS REAL) ", less ? "<" : ">", " ?, 0)"),
         {*ParseReal(c.value)});
  return out;
}

absl::StatusOr<Expression> CompileField(const std::vector<const catalog::Field*>& fields,
                                        const Condition& c) {
  // A seed that follows the job's own is not in the configuration, which replicates share.
  if (fields.front()->name.ends_with("_seed")) return CompareField(fields, c, kOfJob);
  absl::StatusOr<Expression> out = CompareField(fields, c, kOfConfiguration);
  if (!out.ok()) return out;
  out->sql = Concat(
      "j.configuration_id IN (SELECT s.configuration_id FROM (SELECT configuration_id, "
      "iif(json_valid(replace(template, char(31), '0')), replace(template, char(31), '0'), '{}') "
      "AS spec FROM configurations) AS s WHERE ",
      out->sql, ")");
  return out;
}

absl::Status UnknownField(const std::string& name) {
  std::vector<std::string_view> known;
  for (const ColumnType& column : TypedColumns()) known.push_back(column.name);
  known.insert(known.end(), {kGap, kEpochsTo});
  known.insert(known.end(), std::begin(kIndices), std::end(kIndices));
  const std::vector<std::string_view> columns = known;
  for (const catalog::Field& field : catalog::Fields()) {
    if (catalog::IsAnalysisField(field)) continue;
    bool repeated = false;
    for (std::string_view k : known) repeated = repeated || k == field.name;
    if (!repeated) known.push_back(field.name);
  }
  std::string_view near = catalog::DidYouMean(name, known);
  if (near.empty()) {  // lr is train.lr
    const auto ends_so = [&](std::string_view k) { return k.ends_with("." + name); };
    const auto of_group = std::find_if(known.begin(), known.end(), ends_so);
    if (of_group != known.end()) near = *of_group;
  }
  if (near.empty() && name.substr(0, 3) == "pe.") {
    return absl::InvalidArgumentError(Concat(
        "unknown field \"", name,
        "\" in a condition; `pelab catalog field` lists those of encodings; the options of an "
        "own encoding are one field, pe.options: pe.options=alpha=0.5"));
  }
  return absl::InvalidArgumentError(
      Concat("unknown field \"", name, "\" in a condition; ",
             near.empty() ? Concat("known: ", Join(columns, ", "),
                                   ", and the fields that `pelab catalog field` lists")
                          : Concat("did you mean ", near, "?")));
}

}  // namespace

absl::StatusOr<Expression> Compile(const Condition& condition) {
  if (condition.argument && condition.field != kEpochsTo) {
    return absl::InvalidArgumentError(
        Concat("only epochs_to(x) has a number in brackets, not \"", condition.field, "\""));
  }
  if (IsPattern(condition.op) && condition.value.size() > kMaxPatternBytes) {
    return absl::InvalidArgumentError(Concat("condition on ", condition.field, ": the pattern has ",
                                             condition.value.size(), " bytes; at most ",
                                             kMaxPatternBytes, " are allowed"));
  }
  for (const ColumnType& column : TypedColumns()) {
    if (column.name == condition.field) return CompileColumn(column, condition);
  }
  if (condition.field == kGap) {
    return CompareNumber("(j.train_eval_accuracy - j.test_accuracy)", condition);
  }
  if (condition.field == kEpochsTo) return CompileEpochsTo(condition);
  for (const std::string_view index : kIndices) {
    if (index == condition.field) return CompileIndex(index, condition);
  }
  std::vector<const catalog::Field*> fields;  // all rows of that name, by owner; they have one type
  for (const catalog::Field& field : catalog::Fields()) {
    const bool of_analysis = catalog::IsAnalysisField(field);
    if (field.name == condition.field && !of_analysis) fields.push_back(&field);
  }
  if (fields.empty()) return UnknownField(condition.field);
  return CompileField(fields, condition);
}

}  // namespace pelab::db
