// A database file may come from a stranger: whatever its texts contain, no command lets them
// control the terminal that shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/render/json.h"
#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A new line, a tab, a title of the window, a color, U+009B (a C1 control character), and U+202E,
// which turns the direction of text. No table of ours has a tab: one in the output is raw data.
constexpr char kHostile[] = "\n\t\x1b]0;x\a\x1b[31m\xc2\x9b\xe2\x80\xae";
constexpr char kHostileInJson[] = R"(\n\t\u001b]0;x\u0007\u001b[31m\u009b\u202e)";

class HostileDataTest : public ::testing::Test {
 protected:
  HostileDataTest() {
    unsetenv("PELAB_SERVER");
    FillForTest(file_);
    file_.Execute(
        "INSERT INTO audit VALUES (1, 1700000000000, 'alice', 'ipv4:10.0.0.7:1', 'Sweeps/Cancel', "
        "'sweep 3', 'OK', 1, 'trace', 'hash')");
    file_.Execute("PRAGMA foreign_keys = OFF");
    SQLite::Statement columns(file_.db(),
                              "SELECT t.name, c.name FROM sqlite_schema AS t, "
                              "pragma_table_info(t.name) AS c WHERE t.type = 'table' AND "
                              "t.name NOT LIKE 'sqlite_%' AND c.type = 'TEXT'");
    std::vector<std::pair<std::string, std::string>> all;
    while (columns.executeStep()) {
      all.emplace_back(columns.getColumn(0).getString(), columns.getColumn(1).getString());
    }
    columns.reset();
    for (const auto& [table, column] : all) Spoil(table, column);
  }

  CliResult Run(std::vector<std::string> arguments, bool on_terminal) {
    arguments.insert(arguments.begin(), "pelab");
    arguments.insert(arguments.end(), {"--db", file_.path()});
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    CliResult result;
    Context context;
    context.stdout_is_terminal = on_terminal;
    context.out = [&](const std::string& text) { result.out += text; };
    context.err = [&](const std::string& text) { result.err += text; };
    result.code = RunPelab(static_cast<int>(argv.size()), argv.data(), context);
    return result;
  }

  db::DatabaseForTest file_;
  int spoiled_ = 0;  // columns

 private:
  // Appends kHostile to the texts of a column; texts that are JSON objects get a member instead,
  // with such a name and such a value, which differs from row to row. A column that the schema
  // restricts to a list of values stays as it is.
  void Spoil(const std::string& table, const std::string& column) {
    SQLite::Statement update(
        file_.db(), "UPDATE " + table + " SET " + column + " = CASE WHEN substr(" + column +
                        ", 1, 1) <> '{' THEN " + column + " || ?1 ELSE ?2 || replace(" + column +
                        ", '\"', '') || CASE " + column + " WHEN '{}' THEN '\"}' ELSE '\",' || " +
                        "substr(" + column + ", 2) END END");
    const std::string member = std::string("{\"x") + kHostileInJson + "\":\"" + kHostileInJson;
    update.bind(1, kHostile);
    update.bind(2, member);
    try {
      update.exec();
      ++spoiled_;
    } catch (const SQLite::Exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("CHECK constraint failed"));
    }
  }
};

// `allowed`: the control characters that the form of the output needs.
void ExpectHarmless(const std::string& text, std::string_view allowed) {
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    EXPECT_TRUE(!control || allowed.find(c) != std::string_view::npos)
        << "byte " << static_cast<int>(c) << " in " << Escape(text);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
  EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
}

const std::vector<std::vector<std::string>>& Reading() {
  static const auto& commands =
      *new std::vector<std::vector<std::string>>{{"status"},
                                                 {"status", "1"},
                                                 {"sweeps"},
                                                 {"jobs", "1"},
                                                 {"workers"},
                                                 {"results", "1"},
                                                 {"curves", "--sweep", "1"},
                                                 {"ablation", "--sweep", "1"},
                                                 {"deposits", "--sweep", "1"},
                                                 {"analyses", "--sweep", "1"},
                                                 {"artifacts", "--sweep", "1"},
                                                 {"artifacts", "2"},
                                                 {"diff", "1", "3"},
                                                 {"audit"},
                                                 {"logs", "1"}};
  return commands;
}

TEST_F(HostileDataTest, NeverControlsATerminal) {
  EXPECT_GT(spoiled_, 25);
  for (const std::vector<std::string>& command : Reading()) {
    SCOPED_TRACE(Join(command, " "));
    const CliResult result = Run(command, /*on_terminal=*/true);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.out, "");
    // The log of the job has lines of its own, and an escape that is shown as text.
    ExpectHarmless(result.out, "\n");
    ExpectHarmless(result.err, "\n");
  }
  ExpectHarmless(Run({"db", "check"}, true).out, "\n");
}

TEST_F(HostileDataTest, IsEscapedInJsonAndCsvOnATerminalOnly) {
  for (const std::vector<std::string>& command : Reading()) {
    SCOPED_TRACE(Join(command, " "));
    const auto with = [&](const char* output) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--output", output});
      return words;
    };
    const CliResult shown = Run(with("json"), /*on_terminal=*/true);
    ExpectHarmless(shown.out, "\n");
    // To its reader, the escaped JSON says the same.
    const render::Json json = render::Json::parse(shown.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << shown.out;
    EXPECT_EQ(json, render::Json::parse(Run(with("json"), false).out, nullptr, false));
    ExpectHarmless(Run(with("csv"), /*on_terminal=*/true).out, "\r\n\t");
  }
  const std::vector<std::string> jobs = {"jobs", "1", "--output", "csv"};
  EXPECT_THAT(Run(jobs, /*on_terminal=*/false).out, HasSubstr("\x1b[31m"));
}

}  // namespace
}  // namespace pelab::client
