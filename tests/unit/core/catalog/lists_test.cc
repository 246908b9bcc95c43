// Files that list the encodings by hand, because they cannot ask the catalog. Each must name every
// encoding. The checklist in CONTRIBUTING.md must name each of these files, so that an author of a
// new encoding sees them before this test fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/catalog/catalog.h"

namespace pelab::catalog {
namespace {

using testing::HasSubstr;

std::string ReadSource(const std::string& path) {
  std::ifstream file(std::string(PELAB_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct List {
  const char* path;
  const char* before;  // the text before and after a name
  const char* after;
};

void PrintTo(const List& list, std::ostream* out) { *out << list.path; }

const List kLists[] = {
    {"worker/trainer/pe/registry.cc", "{\"", "\", "},
    {"docs/formats.md", "| `", "`"},
    {"core/pages/style/looks.json", "\"", "\""},
    {"tests/golden/decoder.py", "{\"name\": \"", "\""},
    {"tests/golden/decoder.json", "\"name\": \"", "\""},
    {"tests/golden/canonical_keys.json", "\"name\": \"", "\""},
    {"tests/golden/recount/encodings.py", "\"", "\""},
    {"client/export/model.py", "\"", "\": "},
    {"tests/bench/train/model.py", "\"", "\""},
};

class ListTest : public testing::TestWithParam<List> {};

TEST_P(ListTest, NamesEveryEncoding) {
  const std::string text = ReadSource(GetParam().path);
  for (const Entry& pe : Pes()) {
    const std::string name = GetParam().before + std::string(pe.name) + GetParam().after;
    EXPECT_NE(text.find(name), std::string::npos)
        << GetParam().path << " does not name " << pe.name
        << "; CONTRIBUTING.md, \"Adding a positional encoding\", says what to do there";
  }
}

TEST_P(ListTest, IsOnTheChecklist) {
  const std::string page = ReadSource("CONTRIBUTING.md");
  const std::size_t begin = page.find("## Adding a positional encoding");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_THAT(page.substr(begin, page.find("\n## ", begin + 1) - begin),
              HasSubstr(GetParam().path));
}

INSTANTIATE_TEST_SUITE_P(Every, ListTest, testing::ValuesIn(kLists));

}  // namespace
}  // namespace pelab::catalog
