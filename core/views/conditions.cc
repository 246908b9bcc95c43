#include "core/views/conditions.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/catalog/catalog.h"
#include "core/views/text.h"

namespace pelab::views {
namespace {

using catalog::FieldType;

enum class Kind { kText, kInteger, kReal };
struct ColumnType {
  std::string_view name;
  Kind kind;
};
constexpr ColumnType kColumns[] = {{"job_id", Kind::kInteger},
                                   {"key", Kind::kText},
                                   {"generation", Kind::kInteger},
                                   {"pe", Kind::kText},
                                   {"pe_label", Kind::kText},
                                   {"task", Kind::kText},
                                   {"protocol", Kind::kText},
                                   {"seed", Kind::kInteger},
                                   {"state", Kind::kText},
                                   {"attempts", Kind::kInteger},
                                   {"device", Kind::kText},
                                   {"epochs", Kind::kInteger},
                                   {"epochs_done", Kind::kInteger},
                                   {"train_accuracy", Kind::kReal},
                                   {"test_accuracy", Kind::kReal},
                                   {"best_test_accuracy", Kind::kReal},
                                   {"wall_seconds", Kind::kReal},
                                   {"error", Kind::kText},
                                   {"train_correct", Kind::kInteger},
                                   {"train_total", Kind::kInteger},
                                   {"test_correct", Kind::kInteger},
                                   {"test_total", Kind::kInteger}};

std::string_view Symbol(v1::Condition::Operator op) {
  switch (op) {
    case v1::Condition::EQUAL:
      return "=";
    case v1::Condition::NOT_EQUAL:
      return "<>";
    case v1::Condition::LESS:
      return "<";
    case v1::Condition::LESS_OR_EQUAL:
      return "<=";
    case v1::Condition::GREATER:
      return ">";
    case v1::Condition::GREATER_OR_EQUAL:
      return ">=";
    default:
      return "";
  }
}

bool IsOrdering(v1::Condition::Operator op) {
  return op != v1::Condition::EQUAL && op != v1::Condition::NOT_EQUAL;
}

absl::Status BadValue(const v1::Condition& c, std::string_view wanted) {
  return absl::InvalidArgumentError(
      Concat("condition on ", c.field(), ": \"", c.value(), "\" is not ", wanted));
}

absl::Status NoOrder(const v1::Condition& c) {
  return absl::InvalidArgumentError(
      Concat("condition on ", c.field(), ": ", Symbol(c.op()), " needs a number; use = or !="));
}

std::optional<double> ParseReal(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

absl::StatusOr<Expression> CompileColumn(const ColumnType& column, const v1::Condition& c) {
  // A column that is NULL satisfies != : it is not that value.
  const std::string_view op = c.op() == v1::Condition::EQUAL       ? "IS"
                              : c.op() == v1::Condition::NOT_EQUAL ? "IS NOT"
                                                                   : Symbol(c.op());
  Expression out{Concat("j.", column.name, " ", op, " ?"), {}};
  if (column.kind == Kind::kText) {
    if (IsOrdering(c.op())) return NoOrder(c);
    out.binds.emplace_back(c.value());
  } else if (std::int64_t whole = 0; absl::SimpleAtoi(c.value(), &whole)) {
    out.binds.emplace_back(whole);
  } else if (const auto real = ParseReal(c.value())) {
    out.binds.emplace_back(*real);
  } else {
    return BadValue(c, "a number");
  }
  return out;
}

template <typename Integers>
std::string IntegerList(const Integers& integers) {
  return Concat("[", absl::StrJoin(integers, ","), "]");
}

// The JSON text of a field's value as the canonical form writes it. Comparing texts makes = exact
// for doubles.
absl::StatusOr<std::string> JsonText(const catalog::Field& field, const v1::Condition& c) {
  switch (field.type) {
    case FieldType::kBool:
      if (c.value() == "true" || c.value() == "false") return c.value();
      return BadValue(c, "true or false");
    case FieldType::kInt:
    case FieldType::kReal:
      if (const auto real = ParseReal(c.value())) return catalog::NumberToText(*real);
      return BadValue(c, "a number");
    case FieldType::kChoice:
      return Concat("\"", c.value(), "\"");
    case FieldType::kChoiceSet: {
      const std::vector<std::string> given =
          absl::StrSplit(c.value(), absl::ByAnyChar("[],+ "), absl::SkipEmpty());
      std::vector<std::string> kept;  // in the catalog's order, as the canonical form has them
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
           absl::StrSplit(c.value(), absl::ByAnyChar("[],+ "), absl::SkipEmpty())) {
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

// The field's JSON text in a job's spec. A field at its legacy value is not written, so it is read
// as that.
Expression FieldText(const std::vector<const catalog::Field*>& fields) {
  const catalog::Field& field = *fields.front();
  Expression out{Concat("(j.spec_json -> '$.", field.name, "')"), {}};
  for (const catalog::Field* f : fields) {
    if (!f->legacy) continue;
    const std::string written = out.sql;
    const std::string_view owner_is = f->owner.empty() ? "? = ''" : "? IN (j.pe, j.task)";
    out.sql = Concat("coalesce(", written, ", CASE WHEN ", owner_is, " THEN ? END)");
    out.binds.emplace_back(std::string(f->owner));
    out.binds.emplace_back(JsonOf(*f->legacy));
  }
  return out;
}

absl::StatusOr<Expression> CompileField(const std::vector<const catalog::Field*>& fields,
                                        const v1::Condition& c) {
  const catalog::Field& field = *fields.front();
  const bool numeric = field.type == FieldType::kInt || field.type == FieldType::kReal;
  if (IsOrdering(c.op()) && !numeric) return NoOrder(c);
  absl::StatusOr<std::string> wanted = JsonText(field, c);
  if (!wanted.ok()) return wanted.status();
  Expression text = FieldText(fields);
  const bool strict = c.op() == v1::Condition::LESS || c.op() == v1::Condition::GREATER;
  Expression out;
  const auto append = [&](std::string_view op, Bind value) {
    out.sql += Concat(text.sql, " ", op, " ?");
    out.binds.insert(out.binds.end(), text.binds.begin(), text.binds.end());
    out.binds.push_back(std::move(value));
  };
  if (!IsOrdering(c.op())) {
    append(c.op() == v1::Condition::EQUAL ? "IS" : "IS NOT", *wanted);
    return out;
  }
  // Equal by text, else by number: SQLite's own decimal conversion may be off by a bit.
  append(strict ? "IS NOT" : "IS", *wanted);
  out.sql += Concat(strict ? " AND CAST(" : " OR CAST(");
  text.sql += " AS REAL)";
  append(c.op() == v1::Condition::LESS || c.op() == v1::Condition::LESS_OR_EQUAL ? "<" : ">",
         *ParseReal(c.value()));
  return out;
}

absl::Status UnknownField(const std::string& name) {
  std::vector<std::string_view> known;
  for (const ColumnType& column : kColumns) known.push_back(column.name);
  for (const catalog::Field& field : catalog::Fields()) {
    if (catalog::FindAnalysis(field.owner) != nullptr) continue;
    bool repeated = false;
    for (std::string_view k : known) repeated = repeated || k == field.name;
    if (!repeated) known.push_back(field.name);
  }
  const std::string_view near = catalog::DidYouMean(name, known);
  return absl::InvalidArgumentError(Concat("unknown field \"", name, "\" in a condition",
                                           near.empty() ? "" : "; did you mean ", near,
                                           "; known: ", Join(known, ", ")));
}

}  // namespace

absl::StatusOr<Expression> Compile(const v1::Condition& condition) {
  if (Symbol(condition.op()).empty()) {
    return absl::InvalidArgumentError(
        Concat("condition on ", condition.field(), " has no operator"));
  }
  for (const ColumnType& column : kColumns) {
    if (column.name == condition.field()) return CompileColumn(column, condition);
  }
  std::vector<const catalog::Field*> fields;  // of one name, by owner; one type
  for (const catalog::Field& field : catalog::Fields()) {
    const bool of_analysis = catalog::FindAnalysis(field.owner) != nullptr;
    if (field.name == condition.field() && !of_analysis) fields.push_back(&field);
  }
  if (fields.empty()) return UnknownField(condition.field());
  return CompileField(fields, condition);
}

}  // namespace pelab::views
