// NumPy archives of data: what they are converted into, and which are refused.
#include "core/own_files/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/experiment/own_task.h"
#include "core/safetensors/task_file.h"
#include "tests/support/data_file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/core/own_files/npz_fixture.h"

namespace pelab::own_files {
namespace {

using testing::HasSubstr;

const std::vector<std::int64_t> kTokens = {1, 2, 3, 4, 5, 6, 7, 1, 2, 2, 2, 2,
                                           3, 1, 3, 1, 4, 4, 1, 1, 6, 5, 4, 3};

// SmallData as numpy.savez writes it, with texts and numbers beside the arrays.
Entries SmallArrays(int version = 1) {
  const auto npy = [&](const char* type, const char* shape, const std::string& data) {
    return Npy(type, shape, data, "False", version);
  };
  return {{"tokens.npy", npy("<i8", "(6, 4)", RawBytes(kTokens))},
          {"targets.npy", npy("<i2", "(6,)", RawBytes<std::int16_t>({1, 0, 1, 0, 1, 0}))},
          {"split.npy",
           npy("<U5", "(6,)", Utf32({U"train", U"test", U"train", U"train", U"test", U"test"}, 5))},
          {"lengths.npy", npy("|u1", "(6,)", RawBytes<std::uint8_t>({4, 4, 4, 4, 4, 3}))},
          {"easy.npy", npy("|b1", "(6,)", RawBytes<std::uint8_t>({1, 0, 0, 1, 1, 0}))},
          {"name.npy", npy("<U6", "()", Utf32({U"parity"}, 6))},
          {"classes.npy", npy("<i8", "()", RawBytes<std::int64_t>({2}))},
          {"chance.npy", npy("<f8", "()", RawBytes<double>({0.5}))},
          {"class_names.npy", npy("<U4", "(2,)", Utf32({U"é\u2192", U"\U0001D11Ex\""}, 4))}};
}

// The safetensors file into which these arrays are converted.
DataFile SmallConverted() {
  DataFile file = SmallData();
  file.Set("tokens", {6, 4}, kTokens);
  file.Set<std::int16_t>("targets", {6}, {1, 0, 1, 0, 1, 0});
  file.Set<std::uint8_t>("split", {6}, {0, 1, 0, 0, 1, 1});
  file.Set<std::uint8_t>("lengths", {6}, {4, 4, 4, 4, 4, 3});
  file.Set<std::uint8_t>("easy", {6}, {1, 0, 0, 1, 1, 0}, DType::kBool);
  file.metadata = {{"splits", R"(["train","test"])"},
                   {"name", "parity"},
                   {"classes", "2"},
                   {"chance", "0.5"},
                   {"class_names", "[\"é→\",\"\xF0\x9D\x84\x9Ex\\\"\"]"}};
  return file;
}

class NpzTest : public testing::Test {
 protected:
  std::string Path() const { return folder_ / "data.npz"; }
  std::string Convert(const Entries& entries, bool deflated = false) const {
    const auto converted = ConvertNpz(WriteZip(Path(), entries, deflated));
    EXPECT_TRUE(converted.ok()) << converted.status();
    return converted.value_or("");
  }
  // The message about an archive, without the path at its beginning.
  std::string Said(const Entries& entries) const { return SaidOf(WriteZip(Path(), entries)); }
  static std::string SaidOf(const std::string& path) {
    const absl::Status status = ConvertNpz(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string message(status.message());
    const std::string start = path + ": ";
    EXPECT_THAT(message, testing::StartsWith(start));
    return message.size() < start.size() ? message : message.substr(start.size());
  }
  std::string SaidOfArray(const std::string& npy) const { return Said({{"tokens.npy", npy}}); }

  const TempDir folder_;
};

TEST_F(NpzTest, ArraysTextsAndNumbersBecomeTensorsAndMetadata) {
  for (const bool deflated : {false, true}) {
    for (const int version : {1, 2, 3}) {
      EXPECT_EQ(Convert(SmallArrays(version), deflated), SmallConverted().Bytes())
          << deflated << version;
    }
  }
}

TEST_F(NpzTest, TheSameArraysGiveTheSameBytesInAnyOrder) {
  Entries entries = SmallArrays();
  const std::string bytes = Convert(entries);
  EXPECT_EQ(Convert({entries.rbegin(), entries.rend()}), bytes);
  entries[0].second = Npy("<i8", "(6, 4)", RawBytes(std::vector<std::int64_t>(24, 1)));
  EXPECT_NE(Convert(entries), bytes);
}

TEST_F(NpzTest, SplitsAreNumberedInTheOrderOfTheirFirstUse) {
  const std::string bytes = Convert(
      {{"split.npy", Npy("<U6", "(4,)", Utf32({U"long", U"train", U"long", U"Überall"}, 6))}});
  const SafetensorsFile file = ParseSafetensors(bytes).file;
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.Find("split")->dtype, DType::kU8);
  EXPECT_EQ(file.Find("split")->bytes, std::string("\0\1\0\2", 4));
  EXPECT_EQ(file.metadata.at("splits"), "[\"long\",\"train\",\"Überal\"]") << "cut by the width";
}

// b"train" in Python: one byte a character.
TEST_F(NpzTest, TextsOfBytesAreTexts) {
  const std::string bytes =
      Convert({{"split.npy", Npy("|S5", "(2,)", std::string("train") + std::string("test\0", 5))},
               {"name.npy", Npy("|S8", "()", std::string("parity\0\0", 8))}});
  const SafetensorsFile file = ParseSafetensors(bytes).file;
  EXPECT_EQ(file.metadata.at("splits"), R"(["train","test"])");
  EXPECT_EQ(file.metadata.at("name"), "parity");
}

TEST_F(NpzTest, NumbersOfSplitsStayAsTheyAre) {
  const std::string bytes =
      Convert({{"split.npy", Npy("<i4", "(2,)", RawBytes<std::int32_t>({1, 0}))}});
  const SafetensorsFile file = ParseSafetensors(bytes).file;
  EXPECT_EQ(file.Find("split")->dtype, DType::kI32);
  EXPECT_TRUE(file.metadata.empty());
}

TEST_F(NpzTest, ANumberIsWrittenInDecimalDigits) {
  const struct {
    const char* type;
    std::string bytes;
    const char* text;
  } numbers[] = {
      {"|i1", RawBytes<std::int8_t>({-5}), "-5"},
      {"|u1", RawBytes<std::uint8_t>({200}), "200"},
      {"<i2", RawBytes<std::int16_t>({-300}), "-300"},
      {"<u2", RawBytes<std::uint16_t>({60000}), "60000"},
      {"<i4", RawBytes<std::int32_t>({-70000}), "-70000"},
      {"<u4", RawBytes<std::uint32_t>({4000000000u}), "4000000000"},
      {"<i8", RawBytes<std::int64_t>({std::numeric_limits<std::int64_t>::min()}),
       "-9223372036854775808"},
      {"<u8", RawBytes<std::uint64_t>({std::numeric_limits<std::uint64_t>::max()}),
       "18446744073709551615"},
      {"<f4", RawBytes<float>({0.25f}), "0.25"},
      {"<f8", RawBytes<double>({0.1}), "0.1"},
  };
  for (const auto& number : numbers) {
    const std::string bytes = Convert({{"value.npy", Npy(number.type, "()", number.bytes)}});
    EXPECT_EQ(ParseSafetensors(bytes).file.metadata["value"], number.text) << number.type;
  }
}

TEST_F(NpzTest, EveryTypeOfNumbersIsATensorOfThatType) {
  const struct {
    const char* type;
    std::size_t bytes;
    DType dtype;
  } types[] = {{"<f8", 8, DType::kF64}, {"<f4", 4, DType::kF32}, {"<f2", 2, DType::kF16},
               {"<i8", 8, DType::kI64}, {"<i4", 4, DType::kI32}, {"<i2", 2, DType::kI16},
               {"|i1", 1, DType::kI8},  {"<u8", 8, DType::kU64}, {"<u4", 4, DType::kU32},
               {"<u2", 2, DType::kU16}, {"|u1", 1, DType::kU8},  {"|b1", 1, DType::kBool}};
  for (const auto& type : types) {
    std::string data(3 * type.bytes, '\0');
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>('a' + i);
    const std::string bytes = Convert({{"x.npy", Npy(type.type, "(3,)", data)}});
    const SafetensorsFile file = ParseSafetensors(bytes).file;
    ASSERT_NE(file.Find("x"), nullptr) << type.type;
    EXPECT_EQ(file.Find("x")->dtype, type.dtype) << type.type;
    EXPECT_EQ(file.Find("x")->bytes, data) << type.type;
  }
}

TEST_F(NpzTest, WhatCannotBeConvertedIsNamed) {
  const std::string allowed = "; allowed: integers and texts";
  const std::string six = RawBytes(std::vector<std::int64_t>(6, 1));
  EXPECT_EQ(SaidOfArray(Npy(">i8", "(6,)", six)), "the array tokens has the type >i8" + allowed);
  EXPECT_EQ(SaidOfArray(Npy(">U1", "(6,)", Utf32({U"aaaaaa"}, 6))),
            "the array tokens has the type >U1" + allowed);
  EXPECT_EQ(SaidOfArray(Npy("|O", "(6,)", "\x80\x04]q.")),
            "the array tokens has the type |O" + allowed);
  for (const auto& [type, bytes] : {std::pair<const char*, std::size_t>{"<c16", 16},
                                    {"<M8[ns]", 8},
                                    {"|V8", 8},
                                    {"<i3", 3},
                                    {"<i16", 16},
                                    {"<f16", 16},
                                    {"<b8", 8},
                                    {"|b0", 1},
                                    {"<U0", 1},
                                    {"<U-1", 4},
                                    {"<U99999999999999999999", 4},
                                    {"<i", 4},
                                    {"", 1},
                                    {"i8i8i8", 8}}) {
    EXPECT_EQ(SaidOfArray(Npy(type, "(6,)", std::string(6 * bytes, '\1'))),
              std::string("the array tokens has the type ") + type + allowed)
        << type;
  }
  EXPECT_THAT(SaidOfArray(Npy("x', [('a', '<i8')], 'y", "(6,)", six)), HasSubstr(allowed));
  EXPECT_EQ(SaidOfArray(Npy("<i8", "(3, 2)", six, "True")),
            "the array tokens is stored column by column; save numpy.ascontiguousarray of it");
  EXPECT_EQ(SaidOfArray("text"), "the entry tokens is no NumPy array");
  EXPECT_EQ(Said({{"read/me.txt", std::string(100, 'a')}}),
            "the entry read/me.txt is no NumPy array");
  EXPECT_EQ(SaidOfArray(""), "the entry tokens is no NumPy array");
}

TEST_F(NpzTest, ANumberOfATypeThatCannotBeConvertedIsRefusedToo) {
  const std::string allowed = "; allowed: integers and texts";
  for (const auto& [type, bytes] : {std::pair<const char*, std::size_t>{"<u3", 3},
                                    {"<f2", 2},
                                    {"<f16", 16},
                                    {"<i16", 16},
                                    {"<b8", 8},
                                    {"|f1", 1}}) {
    EXPECT_EQ(Said({{"classes.npy", Npy(type, "()", std::string(bytes, '\1'))}}),
              std::string("the array classes has the type ") + type + allowed);
  }
}

// One row is the same in both orders.
TEST_F(NpzTest, AnArrayOfOneDimensionHasNoOrder) {
  const std::string data = RawBytes<std::int32_t>({5, 6});
  EXPECT_EQ(Convert({{"x.npy", Npy("<i4", "(2,)", data, "True")}}),
            Convert({{"x.npy", Npy("<i4", "(2,)", data)}}));
}

TEST_F(NpzTest, ShapesAndSizesAgree) {
  const std::string six = RawBytes(std::vector<std::int64_t>(6, 1));
  const std::string unread = "the array tokens has a shape that cannot be read";
  const std::string other = "the array tokens has another size than its shape";
  for (const char* shape : {"(6, x)", "(-6,)", "(1, 1, 1, 1, 1, 1, 1, 1, 6)", "(1073741825,)",
                            "(99999999999999999999,)", "(6.0,)"}) {
    EXPECT_EQ(SaidOfArray(Npy("<i8", shape, six)), unread) << shape;
  }
  for (const char* shape :
       {"(5,)", "(7,)", "(3, 3)", "()", "(1073741824, 1073741824, 1073741824)",
        "(1073741824, 1073741824, 1073741824, 1073741824, 1073741824, 1073741824, 1073741824, 6)",
        // 2^64 elements are 0 in 64 bits
        "(1073741824, 1073741824, 16)"}) {
    EXPECT_EQ(SaidOfArray(Npy("<i8", shape, six)), other) << shape;
  }
  EXPECT_EQ(SaidOfArray(Npy("<i8", "(6,)", six.substr(0, 47))), other);
  EXPECT_EQ(SaidOfArray(Npy("<i8", "(6,)", six + "x")), other);
  EXPECT_EQ(SaidOfArray(Npy("<i8", "(0,)", "")), "the array tokens is empty");
  EXPECT_EQ(SaidOfArray(Npy("<i8", "(6, 0)", "")), "the array tokens is empty");
  std::string cut = Npy("<i8", "(6,)", "");
  cut[8] = '\xff';
  EXPECT_EQ(SaidOfArray(cut), "the array tokens is cut off");
  std::string longer = Npy("<i8", "(6,)", six, "False", 2);
  longer[11] = '\x7f';
  EXPECT_EQ(SaidOfArray(longer), "the array tokens is cut off");
}

TEST_F(NpzTest, TextsAreBounded) {
  const std::string few(1 << 20, 'a');
  EXPECT_NE(Convert({{"notes.npy", Npy("|S1048576", "(1,)", few)}}), "");
  EXPECT_EQ(Said({{"notes.npy", Npy("|S1", "(1048577,)", few + "a")}}),
            "the texts of notes have more than 1048576 bytes");
  std::vector<std::u32string> names;
  for (char32_t i = 0; i < 32; ++i) names.push_back({U'a' + i});
  EXPECT_NE(Convert({{"split.npy", Npy("<U1", "(32,)", Utf32(names, 1))}}), "");
  names.push_back(U"A");
  EXPECT_EQ(Said({{"split.npy", Npy("<U1", "(33,)", Utf32(names, 1))}}),
            "split has more than 32 different names");
}

// A file whose JSON header cannot be written would end the program.
TEST_F(NpzTest, TextsThatAreNoTextBecomeQuestionMarks) {
  const std::string bytes =
      Convert({{"name.npy", Npy("|S3", "()",
                                "a\xff"
                                "b")},
               {"help.npy", Npy("<U2", "()", RawBytes<std::uint32_t>({0xD800, 'a'}))},
               {"words.npy", Npy("<U1", "(1,)", RawBytes<std::uint32_t>({0xFFFFFFFF}))},
               {"split.npy", Npy("|S1", "(2,)",
                                 "\xff"
                                 "a")}});
  const SafetensorsResult read = ParseSafetensors(bytes);
  ASSERT_EQ(read.problem, "");
  EXPECT_EQ(read.file.metadata.at("name"), "a?b");
  EXPECT_THAT(read.file.metadata.at("help"), testing::MatchesRegex("\\?+a"));
  EXPECT_THAT(read.file.metadata.at("words"), testing::MatchesRegex("\\[\"\\?+\"\\]"));
  EXPECT_EQ(read.file.metadata.at("splits"), "[\"?\",\"a\"]");
}

TEST_F(NpzTest, ANameIsUsedOnce) {
  const std::string two = Npy("<U5", "(2,)", Utf32({U"train", U"test"}, 5));
  EXPECT_EQ(Said({{"split", two}, {"split.npy", two}}), "the archive has two arrays split");
  EXPECT_EQ(Said({{"classes.npy", Npy("<i4", "()", RawBytes<std::int32_t>({2}))},
                  {"classes", Npy("<i4", "(1,)", RawBytes<std::int32_t>({2}))}}),
            "the archive has two arrays classes");
}

TEST_F(NpzTest, TheNumberOfArraysIsBounded) {
  const std::string one = Npy("|u1", "(1,)", "a");
  Entries entries;
  for (int i = 0; i < 100; ++i) entries.emplace_back("x" + std::to_string(i) + ".npy", one);
  EXPECT_NE(Convert(entries), "");
  entries.emplace_back("y.npy", one);
  EXPECT_EQ(Said(entries), "the archive has 101 arrays; at most 100 are allowed");
}

// Sets the unpacked size that an archive declares for the entry of this number.
void DeclareSize(std::string* archive, int entry, std::uint32_t size) {
  for (const auto& [mark, at] :
       {std::pair<std::string, std::size_t>{std::string("PK\3\4"), 22}, {"PK\1\2", 24}}) {
    std::size_t found = archive->find(mark);
    for (int i = 0; i < entry; ++i) found = archive->find(mark, found + 1);
    ASSERT_NE(found, std::string::npos);
    for (int b = 0; b < 4; ++b) {
      (*archive)[found + at + b] = static_cast<char>(size >> (8 * b));
    }
  }
}

// Nothing of these sizes is reserved: they are only declared.
TEST_F(NpzTest, AnArchiveThatUnpacksToTooMuchIsRefusedPacked) {
  constexpr std::uint32_t kMost = 1u << 30;
  static_assert(kMost == experiment::kMaxTaskBytes);
  const std::string most = "the archive unpacks to more than 1073741824 bytes, the most allowed";
  const Entries entries = {{"a.npy", Npy("|u1", "(1,)", "a")}, {"b.npy", std::string(500, 'b')}};
  const std::string whole = BytesIn(WriteZip(Path(), entries, /*deflated=*/true));
  std::string bomb = whole;
  DeclareSize(&bomb, 0, kMost + 1);
  EXPECT_EQ(SaidOf(WriteBytes(Path(), bomb)), most);
  bomb = whole;
  DeclareSize(&bomb, 1, kMost);  // with the first entry it is too much
  EXPECT_EQ(SaidOf(WriteBytes(Path(), bomb)), most);
}

TEST_F(NpzTest, WhatIsNoArchiveIsRefused) {
  const std::string no = "this is no NumPy archive, or a damaged one";
  EXPECT_EQ(SaidOf(WriteBytes(Path(), "")), no);
  EXPECT_EQ(SaidOf(WriteBytes(Path(), "PK\3\4")), no);
  EXPECT_EQ(SaidOf(WriteBytes(Path(), std::string(1000, 'x'))), no);
  EXPECT_EQ(SaidOf(WriteBytes(Path(), Npy("<i4", "(1,)", "abcd"))), no);
  EXPECT_EQ(SaidOf(folder_ / "none.npz"), no);
}

TEST_F(NpzTest, DamagedDataIsRefused) {
  const std::string data = "the bytes of this array";
  const std::string whole =
      BytesIn(WriteZip(Path(), {{"x.npy", Npy("|u1", "(23,)", data)}}, /*deflated=*/false));
  std::string damaged = whole;
  damaged[whole.find(data)] = 'T';
  EXPECT_EQ(SaidOf(WriteBytes(Path(), damaged)), "the array x.npy is damaged");
}

TEST_F(NpzTest, EveryTruncationAndChangedByteIsRefusedOrRead) {
  for (const bool deflated : {false, true}) {
    const Entries entries = {{"split.npy", Npy("<U1", "(2,)", Utf32({U"a", U"b"}, 1))}};
    const std::string whole = BytesIn(WriteZip(Path(), entries, deflated));
    for (std::size_t size = 0; size < whole.size() && !deflated; ++size) {
      EXPECT_FALSE(ConvertNpz(WriteBytes(Path(), whole.substr(0, size))).ok()) << size;
    }
    int read = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (at % 2 == 0 ? '\x01' : '\x80'));
      const auto converted = ConvertNpz(WriteBytes(Path(), changed));
      if (!converted.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(converted.status())) << converted.status();
        continue;
      }
      ++read;
      EXPECT_EQ(ParseSafetensors(*converted).problem, "") << at;
    }
    EXPECT_GT(read, 0) << "the times of the entries do not matter";
  }
}

}  // namespace
}  // namespace pelab::own_files
