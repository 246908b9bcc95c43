#include "core/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace pelab {
namespace {

TEST(Utf8, IsStrict) {
  for (const char* text : {"", "plain", "ümlaut 数 🙂", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string_view("a\0b", 3)));
  const char* bad[] = {"\xff",         "plain\xc3",        "\xc3(", "\xc0\xaf",
                       "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80",  "\xe6\x95 and more"};
  for (const char* text : bad) EXPECT_FALSE(IsUtf8(text)) << text;
}

TEST(Utf8, ShortenCutsBetweenCharacters) {
  EXPECT_EQ(Shorten("plain", 5), "plain");
  EXPECT_EQ(Shorten("plain", 4), "plai…");
  const std::string text = "aü数🙂";  // 1 + 2 + 3 + 4 bytes
  const char* expected[] = {"…",   "a…",    "a…",    "aü…",   "aü…",
                            "aü…", "aü数…", "aü数…", "aü数…", "aü数…"};
  for (std::size_t bytes = 0; bytes < 10; ++bytes) {
    EXPECT_EQ(Shorten(text, bytes), expected[bytes]) << bytes;
  }
  EXPECT_EQ(Shorten(text, 10), text);
}

TEST(Utf8, ShortenMakesBytesUtf8) {
  EXPECT_EQ(Shorten("a\xff\xc3", 100), "a??");
  EXPECT_EQ(Shorten(std::string_view("a\0b", 3), 100), "a?b");
  EXPECT_EQ(Shorten("\xff\xff\xff", 2), "??…");
  EXPECT_EQ(ValidUtf8("half \xc3"), "half ?");
  EXPECT_EQ(ValidUtf8("whole ü"), "whole ü");
}

TEST(Utf8, EscapeShowsWhatCannotBeSeen) {
  EXPECT_EQ(Escape("a\xd8\x9c"), "a\\u061c") << "Arabic letter mark";
  EXPECT_EQ(Escape("a\xe2\x81\xa6"), "a\\u2066") << "left-to-right isolate";
  const std::string once = Escape("\x1b]0;x\a\xc2\x9b\xff\\n");
  EXPECT_EQ(once, "\\x1b]0;x\\x07\\x9b\\xff\\n");
  EXPECT_EQ(Escape(once), once);
}

TEST(Utf8, EscapedJsonMeansTheSame) {
  EXPECT_EQ(EscapeJson("{\n\t\"ü\": \"\x7f\xc2\x9b\xe2\x80\xae\xef\xbb\xbf\"\n}"),
            "{\n\t\"ü\": \"\\u007f\\u009b\\u202e\\ufeff\"\n}");
  EXPECT_EQ(EscapeJson("\"\xff\""), "\"\\ufffd\"");
  const std::string plain = "{\"text\": \"1 \\u001b \\n\"}\n";
  EXPECT_EQ(EscapeJson(plain), plain);
}

}  // namespace
}  // namespace pelab
