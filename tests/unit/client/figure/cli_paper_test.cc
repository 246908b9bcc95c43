// --output svg, pdf, latex and markdown on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/unit/client/cli_fixture.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliPaperTest : public ::testing::Test {
 protected:
  CliPaperTest() {
    unsetenv("PELAB_SERVER");
    FillForTest(file_);
  }
  CliResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--db", file_.path()});
    return RunCli(std::move(arguments));
  }
  std::string Path(const std::string& name) const { return file_.directory() + "/" + name; }

  db::DatabaseForTest file_;
};

TEST_F(CliPaperTest, CurvesAndAblationsAreDrawn) {
  for (const char* command : {"curves", "ablation"}) {
    const CliResult svg = Run({command, "quick", "--output", "svg"});
    EXPECT_EQ(svg.code, 0) << svg.err;
    EXPECT_THAT(svg.out, StartsWith("<?xml"));
    const CliResult pdf = Run({command, "quick", "--output", "pdf"});
    EXPECT_EQ(pdf.code, 0) << pdf.err;
    EXPECT_THAT(pdf.out, StartsWith("%PDF-"));
  }
}

TEST_F(CliPaperTest, CurvesAreThoseThatAreStored) {
  // FillForTest: nope has 101 and 108 of 300 in epoch 1, a mean of 104.5 / 300.
  EXPECT_THAT(Run({"curves", "quick", "--output", "latex"}).out, HasSubstr(" (1,34.8"));
  EXPECT_THAT(Run({"curves", "quick", "--output", "markdown"}).out, HasSubstr(" 34.83 |"));
}

TEST_F(CliPaperTest, ResultsAreTables) {
  EXPECT_THAT(Run({"results", "quick", "--output", "latex"}).out,
              HasSubstr("    nope & distance & 34.83 & $\\pm$14.82 & 2/2 \\\\\n"));
  const CliResult markdown = Run({"results", "quick", "--output", "markdown"});
  EXPECT_THAT(markdown.out,
              HasSubstr("| nope     | distance |             34.83 |   ±14.82 | 2/2 |"));
  EXPECT_THAT(markdown.out, HasSubstr("38.33\\*"));
  EXPECT_THAT(
      Run({"results", "quick", "--compare", "pe=rope", "--with", "pe=nope", "--output", "markdown"})
          .out,
      HasSubstr("pe=rope against pe=nope, paired by seed"));
  EXPECT_THAT(Run({"ablation", "quick", "--output", "latex"}).out, HasSubstr("\\toprule"));
}

TEST_F(CliPaperTest, GoesToAFileThatIsNotReplacedUnasked) {
  const CliResult first = Run({"curves", "quick", "--output", "pdf", "--out", Path("a.pdf")});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, "");
  std::ifstream file(Path("a.pdf"));
  EXPECT_THAT((std::string{std::istreambuf_iterator<char>(file), {}}), StartsWith("%PDF-"));
  const CliResult again = Run({"curves", "quick", "--output", "pdf", "--out", Path("a.pdf")});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("already exists; --force replaces it"));
  EXPECT_EQ(Run({"curves", "quick", "--output", "svg", "--out", Path("a.pdf"), "--force"}).code, 0);
  const CliResult table = Run({"curves", "quick", "--out", Path("b.txt")});
  EXPECT_EQ(table.code, 2);
  EXPECT_THAT(table.err, HasSubstr("--out is for --output svg, pdf, latex and markdown"));
}

TEST_F(CliPaperTest, WhatMakesNoSenseIsRefused) {
  const CliResult jobs = Run({"jobs", "quick", "--output", "svg"});
  EXPECT_EQ(jobs.code, 2);
  EXPECT_EQ(jobs.out, "");
  EXPECT_THAT(jobs.err,
              HasSubstr("--output svg: pelab jobs gives table, json, jsonl or csv; svg is "
                        "for pelab curves and pelab ablation"));
  EXPECT_THAT(Run({"results", "quick", "--output", "pdf"}).err, HasSubstr("pelab results gives"));
  EXPECT_EQ(Run({"results", "quick", "--seeds", "--output", "latex"}).code, 2);
  EXPECT_EQ(Run({"ablation", "quick", "--strip", "--output", "svg"}).code, 2);
  EXPECT_EQ(Run({"curves", "quick", "--output", "png"}).code, 2);
}

TEST_F(CliPaperTest, APdfIsNotForATerminal) {
  CliResult result;
  Context context;
  context.stdout_is_terminal = true;
  context.out = [&](const std::string& text) { result.out += text; };
  context.err = [&](const std::string& text) { result.err += text; };
  const std::string path = file_.path();
  const char* arguments[] = {"pelab", "curves", "quick", "--output", "pdf", "--db", path.c_str()};
  EXPECT_EQ(RunPelab(7, arguments, context), 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("say `> figure.pdf`, or --out figure.pdf"));
}

}  // namespace
}  // namespace pelab::client
