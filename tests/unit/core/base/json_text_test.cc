#include "core/base/json_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

namespace pelab {
namespace {

namespace fs = std::filesystem;

std::string Lists(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }
std::string Objects(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "{\"a\":";
  return text + "1" + std::string(depth, '}');
}

TEST(JsonText, AsDeepAsAllowed) {
  for (const std::string& text :
       {Lists(64), Objects(64), "[" + Objects(63) + "," + Lists(63) + "]"}) {
    EXPECT_TRUE(IsJson(text));
    EXPECT_EQ(ParseJson(text).dump(), text);
  }
  for (const std::string& text : {Lists(65), Objects(65), "[" + Objects(64) + "]"}) {
    EXPECT_EQ(WhyNotBounded(text), "is nested more than 64 deep");
    EXPECT_FALSE(IsJson(text));
    EXPECT_TRUE(ParseJson(text).is_discarded());
    EXPECT_TRUE(ParseJsonOrNull(text).is_null());
  }
}

TEST(JsonText, AMillionDeepEndsNobody) {
  EXPECT_TRUE(ParseJson(Lists(1'000'000)).is_discarded());
  EXPECT_TRUE(ParseJson(Objects(100'000)).is_discarded());
  EXPECT_TRUE(ParseJson(std::string(1'000'000, '[')).is_discarded()) << "and never closed";
}

TEST(JsonText, BracketsInTextsAreText) {
  const std::string brackets(1000, '[');
  const std::string quoted = R"({"a":"\")" + brackets + R"(\\"})";
  EXPECT_TRUE(IsJsonObject(quoted));
  EXPECT_TRUE(ParseJson(R"(["\\",)" + brackets).is_discarded());
}

TEST(JsonText, WhatIsNotJson) {
  for (const char* text : {"", "{", "nope", "{} {}", "[1,]", "\"\xff\"", "1e999", "]", "]]]["}) {
    EXPECT_FALSE(IsJson(text)) << text;
    EXPECT_TRUE(ParseJson(text).is_discarded()) << text;
    EXPECT_EQ(WhyNotBounded(text), "") << text;
  }
  EXPECT_TRUE(IsJson("[]"));
  EXPECT_FALSE(IsJsonObject("[]"));
}

// Nlohmann's reader takes them, SQLite's does not, and both read what is stored.
TEST(JsonText, AByteOrderMarkAndANulByteAreRefused) {
  const std::string mark = "\xEF\xBB\xBF{}";
  const std::string nul("{}\0", 3);
  const std::string inside("{\"a\":\"\0\"}", 9);
  EXPECT_EQ(WhyNotBounded(mark), "begins with a byte order mark");
  EXPECT_EQ(WhyNotBounded(nul), "holds a NUL byte");
  for (const std::string& text : {mark, nul, inside}) {
    EXPECT_FALSE(IsJson(text));
    EXPECT_FALSE(IsJsonObject(text));
    EXPECT_TRUE(ParseJson(text).is_discarded());
    EXPECT_TRUE(ParseJsonOrNull(text).is_null());
  }
  EXPECT_TRUE(IsJson("\"\\u0000 \xEF\xBB\xBF\"")) << "inside a string both are text";
}

TEST(JsonText, TooLong) {
  const std::string text = "[" + std::string(kMaxJsonBytes, ' ') + "]";
  EXPECT_EQ(WhyNotBounded(text), "has 16777218 bytes; at most 16777216 are allowed");
  EXPECT_TRUE(ParseJson(text).is_discarded());
}

TEST(JsonText, AnIntegerIsOneThatFits) {
  const auto as_int = [](const char* text) { return IntegerOf<int>(ParseJson(text)); };
  EXPECT_EQ(as_int("-2147483648"), -2147483648);
  EXPECT_EQ(as_int("2147483647"), 2147483647);
  for (const char* other : {"2147483648", "-2147483649", "4294967297", "18446744073709551615",
                            "1.0", "1e3", "1.5", "-0.0", "true", "null", "\"1\"", "[1]"}) {
    EXPECT_EQ(as_int(other), std::nullopt) << other;
  }
  EXPECT_EQ(IntegerOf<std::uint64_t>(ParseJson("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(IntegerOf<std::uint64_t>(ParseJson("-1")), std::nullopt);
  EXPECT_EQ(IntegerOf<std::int64_t>(ParseJson("9223372036854775808")), std::nullopt);
  EXPECT_EQ(IntegerOf<std::int64_t>(ParseJson("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(IntegerOf<std::int64_t>(ParseJson("-9223372036854775809")), std::nullopt);
}

// The library's own readers have no limit. A file that calls them must state here why that is safe.
TEST(JsonText, NobodyElseReadsJson) {
  const std::map<std::string, std::string> allowed = {
      {"core/base/json_text.h", "within the limits"},
      {"core/base/json_text.cc", "within the limits"},
      {"core/experiment/canonical_reader.cc", "after WhyNotBounded: it has to see doubled names"}};
  for (const char* part : {"core", "server", "worker", "client", "migrations"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(PELAB_SOURCE_DIR) / part)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".cc" && path.extension() != ".h") continue;
      std::stringstream text;
      text << std::ifstream(path).rdbuf();
      for (const char* reader : {"son::parse(", "son::accept(", "son::sax_parse("}) {
        if (text.str().find(reader) == std::string::npos) continue;
        const std::string name = fs::relative(path, PELAB_SOURCE_DIR).string();
        EXPECT_EQ(allowed.count(name), 1u) << name << " calls ..." << reader << "; use ParseJson";
      }
    }
  }
}

}  // namespace
}  // namespace pelab
