#include "migrations/objects.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "migrations/migrations.h"

namespace pelab::migrations {
namespace {

// A row of sqlite_master.
struct Row {
  std::string_view type;  // "table", "view", "index" or "trigger"
  std::string_view name;
  std::string_view table;
  std::string_view sql;  // empty for what SQLite makes itself
};

using Expected = std::map<std::string_view, const Object*>;  // by name

// The objects that the migrations up to `version` make.
Expected ExpectedIn(int version) {
  Expected expected;
  for (const Object& object : Objects()) {
    if (version < object.first || version > object.last) continue;
    expected.emplace(object.name, &object);
  }
  return expected;
}

bool IsOfWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// The end of what begins at `from`: behind the next `close`, where two of them stand for one.
std::size_t EndOfQuoted(std::string_view sql, std::size_t from, char close) {
  for (std::size_t at = from + 1; at < sql.size(); ++at) {
    if (sql[at] != close) continue;
    if (at + 1 == sql.size() || sql[at + 1] != close) return at + 1;
    ++at;
  }
  return sql.size();
}

std::size_t EndOfComment(std::string_view sql, std::size_t from) {
  const std::size_t end = sql[from] == '-' ? sql.find('\n', from) : sql.find("*/", from + 2);
  return end == sql.npos ? sql.size() : end + (sql[from] == '-' ? 1 : 2);
}

bool BeginsComment(std::string_view rest) {
  return rest.starts_with("--") || rest.starts_with("/*");
}

// A quoted name without its quotes, if it needs none. Other tokens as they are.
std::string_view Unquoted(std::string_view name) {
  const bool quoted = name.front() == '"' || name.front() == '`' || name.front() == '[';
  if (!quoted || name.size() < 3) return name;
  const std::string_view inside = name.substr(1, name.size() - 2);
  for (const char c : inside) {
    if (!IsOfWord(c)) return name;
  }
  return inside;
}

// The token that begins at `at`, which is neither a blank nor a comment.
std::string_view TokenAt(std::string_view sql, std::size_t at) {
  const char first = sql[at];
  if (first == '\'' || first == '"' || first == '`' || first == '[') {
    return sql.substr(at, EndOfQuoted(sql, at, first == '[' ? ']' : first) - at);
  }
  std::size_t end = at;
  while (end < sql.size() && IsOfWord(sql[end])) ++end;
  return sql.substr(at, end == at ? 1 : end - at);
}

absl::Status Differs(const std::string& path, const std::string& what) {
  return absl::FailedPreconditionError(Concat(path, " is not as pelab made it: ", what));
}

std::string Quoted(std::string_view name) {
  return Concat("\"", absl::CHexEscape(std::string(name.substr(0, 80))), "\"");
}

// What is wrong with an object that pelab does not make; nullopt if it does no harm.
std::optional<std::string> WrongAddition(const Expected& expected, const Row& object) {
  if (object.type == "trigger") {
    return Concat("it has a trigger ", Quoted(object.name),
                  ", and pelab makes none; DROP TRIGGER removes it");
  }
  const bool of_pelab = expected.contains(absl::AsciiStrToLower(std::string(object.table)));
  if (object.type == "index" && !object.sql.empty() && of_pelab) {
    return Concat("its table ", Quoted(object.table), " has an index ", Quoted(object.name),
                  " that pelab does not make; DROP INDEX removes it");
  }
  return std::nullopt;
}

// Valid until the next step.
Row RowOf(SQLite::Statement& rows) {
  const auto text = [&rows](int column) {
    const SQLite::Column value = rows.getColumn(column);
    return std::string_view(value.getText(), value.getBytes());
  };
  return {.type = text(0), .name = text(1), .table = text(2), .sql = text(3)};
}

// Most files have the very text of the migrations, and files are opened often.
bool AreSame(const Row& a, const Object& b) {
  return a.type == b.type && a.table == b.table &&
         (a.sql == b.sql || TokensOf(a.sql) == TokensOf(b.sql));
}

}  // namespace

std::string TokensOf(std::string_view sql) {
  std::string tokens;
  for (std::size_t at = 0; at < sql.size();) {
    if (absl::ascii_isspace(static_cast<unsigned char>(sql[at]))) {
      ++at;
    } else if (BeginsComment(sql.substr(at))) {
      at = EndOfComment(sql, at);
    } else {
      const std::string_view token = TokenAt(sql, at);
      if (!tokens.empty()) tokens += ' ';
      tokens += Unquoted(token);
      at += token.size();
    }
  }
  return tokens;
}

absl::Status CheckObjects(SQLite::Database& db, const std::string& path, int version) {
  const Expected expected = ExpectedIn(version);
  Expected missing = expected;
  std::map<std::string, std::string> additions, differences;  // by the name of the object
  SQLite::Statement rows(db, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master");
  while (rows.executeStep()) {
    const Row row = RowOf(rows);
    const auto made = expected.find(row.name);
    if (made == expected.end()) {
      if (auto wrong = WrongAddition(expected, row)) additions[std::string(row.name)] = *wrong;
      continue;
    }
    missing.erase(row.name);
    const Object& object = *made->second;
    if (AreSame(row, object)) continue;
    differences[std::string(row.name)] = Concat("its ", row.type, " \"", row.name, "\" is not the ",
                                                object.type, " of schema ", version);
  }
  for (const auto& [name, object] : missing) {
    differences[std::string(name)] = Concat("its ", object->type, " \"", name, "\" is missing");
  }
  for (const auto* wrong : {&additions, &differences}) {
    if (!wrong->empty()) return Differs(path, wrong->begin()->second);
  }
  return absl::OkStatus();
}

}  // namespace pelab::migrations
