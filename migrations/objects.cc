#include "migrations/objects.h"

#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "migrations/migrations.h"

namespace pelab::migrations {
namespace {

// A row of sqlite_master of a file, or of Objects().
struct Form {
  std::string type;  // "table", "view", "index" or "trigger"
  std::string table;
  std::string sql;
};
using Forms = std::map<std::string, Form>;  // by name

Forms FormsOf(SQLite::Database& db) {
  Forms forms;
  SQLite::Statement rows(db, "SELECT name, type, tbl_name, coalesce(sql, '') FROM sqlite_master");
  while (rows.executeStep()) {
    forms[rows.getColumn(0).getString()] = {.type = rows.getColumn(1).getString(),
                                            .table = rows.getColumn(2).getString(),
                                            .sql = rows.getColumn(3).getString()};
  }
  return forms;
}

// The objects that the migrations up to `version` make.
Forms FormsOf(int version) {
  Forms forms;
  for (const Object& object : Objects()) {
    if (version < object.first || version > object.last) continue;
    forms[std::string(object.name)] = {.type = std::string(object.type),
                                       .table = std::string(object.table),
                                       .sql = std::string(object.sql)};
  }
  return forms;
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
  return absl::FailedPreconditionError(absl::StrCat(path, " is not as pelab made it: ", what));
}

std::string Quoted(const std::string& name) {
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, 80)), "\"");
}

// What is wrong with an object that pelab does not make; nullopt if it does no harm.
std::optional<std::string> WrongAddition(const Forms& expected, const std::string& name,
                                         const Form& object) {
  if (object.type == "trigger") {
    return absl::StrCat("it has a trigger ", Quoted(name),
                        ", and pelab makes none; DROP TRIGGER removes it");
  }
  const bool of_pelab = expected.contains(absl::AsciiStrToLower(object.table));
  if (object.type == "index" && !object.sql.empty() && of_pelab) {
    return absl::StrCat("its table ", Quoted(object.table), " has an index ", Quoted(name),
                        " that pelab does not make; DROP INDEX removes it");
  }
  return std::nullopt;
}

// Most files have the very text of the migrations, and files are opened often.
bool AreSame(const Form& a, const Form& b) {
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
  const Forms expected = FormsOf(version);
  const Forms found = FormsOf(db);
  for (const auto& [name, object] : found) {
    if (expected.contains(name)) continue;
    if (const auto wrong = WrongAddition(expected, name, object)) return Differs(path, *wrong);
  }
  for (const auto& [name, object] : expected) {
    const auto at = found.find(name);
    if (at == found.end()) {
      return Differs(path, absl::StrCat("its ", object.type, " \"", name, "\" is missing"));
    }
    const Form& other = at->second;
    if (!AreSame(other, object)) {
      return Differs(path, absl::StrCat("its ", other.type, " \"", name, "\" is not the ",
                                        object.type, " of schema ", version));
    }
  }
  return absl::OkStatus();
}

}  // namespace pelab::migrations
