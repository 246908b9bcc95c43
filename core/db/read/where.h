// The language of `--where`. Pure functions: thread-safe.
//
//   expression = all {"or" all}
//   all        = one {["and" | ","] one}
//   one        = "not" one | "(" expression ")" | condition
//   condition  = field ("=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~") value
//              | field ["not"] "in" "(" item {"," item} ")"
//   item       = value | integer ".." integer
//   field      = name ["(" number ")"]
//   value      = text in quotes (' or ", doubled within), or text up to a space, a comma or a
//                closing bracket; brackets opened within it belong to it:
//                rope(base=500,scale=2), [attention, output]
//
// At most 64,000 bytes, 1,000 conditions and listed values, and 50 levels of brackets and nots.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/db/read/conditions.h"

namespace pelab::db {

// Compiles a condition; "1" for an empty or blank text. INVALID_ARGUMENT names the column, the text
// found there and what is allowed there. Internal to core/db.
absl::StatusOr<Expression> CompileWhere(const std::string& text);

// A value with which a condition compares a field.
struct WantedValue {
  std::string field;
  std::string value;
  std::string op = "=";  // or < <= > >=
};
// Those of all conditions with these operators or `in`, in order of appearance; of a range none.
absl::StatusOr<std::vector<WantedValue>> ValuesOfWhere(const std::string& text);
// This comparison as a condition.
std::string WhereOne(const WantedValue& wanted);

// The fields that the conditions name, each once, in order of appearance.
absl::StatusOr<std::vector<std::string>> FieldsOfWhere(const std::string& text);

}  // namespace pelab::db
