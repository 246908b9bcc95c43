// Any bytes as JSON: nothing throws, what is accepted reads back to itself, and SQLite reads it
// too, because its functions look into stored texts.
#include <sqlite3.h>

#include "core/base/json_text.h"
#include "tests/fuzz/fuzz.h"

namespace pelab::json_text_fuzz {
namespace {

using pelab::fuzz::Require;
using Json = nlohmann::json;

sqlite3_stmt* Valid() {
  sqlite3* db = nullptr;
  sqlite3_stmt* statement = nullptr;
  Require(sqlite3_open(":memory:", &db) == SQLITE_OK &&
              sqlite3_prepare_v2(db, "SELECT json_valid(?)", -1, &statement, nullptr) == SQLITE_OK,
          "SQLite has JSON");
  return statement;
}

bool SqliteReads(std::string_view text) {
  static sqlite3_stmt* const statement = Valid();
  sqlite3_bind_text64(statement, 1, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  const bool valid = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == 1;
  sqlite3_reset(statement);
  return valid;
}

void CheckNumbers(const Json& json) {
  if (json.is_structured()) {
    for (const Json& item : json) CheckNumbers(item);
    return;
  }
  const auto wide = pelab::IntegerOf<std::int64_t>(json);
  const auto narrow = pelab::IntegerOf<std::int32_t>(json);
  Require(!narrow || wide == std::int64_t{*narrow}, "an integer is the same in more bits");
  Require(!wide || Json(*wide) == json, "an integer is the number of the text");
  Require(!json.is_number_float() || !wide, "a number with a fraction is no integer");
}

}  // namespace

PELAB_FUZZ_TARGET(json_text) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Json json = pelab::ParseJson(text);
  Require(pelab::IsJson(text) == !json.is_discarded(), "IsJson and ParseJson agree");
  Require(pelab::IsJsonObject(text) == json.is_object(), "IsJsonObject and ParseJson agree");
  Require(pelab::ParseJsonOrNull(text).is_discarded() == false, "there is a value, or null");
  const std::string why = pelab::WhyNotBounded(text);
  if (!why.empty()) {
    pelab::fuzz::RequireSentence(why);
    Require(json.is_discarded(), "what is too much is not read", why);
  }
  if (json.is_discarded()) return 0;
  Require(SqliteReads(text), "SQLite reads what is accepted");
  Require(pelab::ParseJson(json.dump()) == json, "a value reads back to itself");
  CheckNumbers(json);
  return 0;
}

}  // namespace pelab::json_text_fuzz
