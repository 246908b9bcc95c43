// The safetensors format: what is written, and what is read from good and from malformed files.
#include "core/safetensors/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/data_file.h"

namespace pelab {
namespace {

using testing::HasSubstr;

SafetensorsFile TwoTensors(const std::string& bytes) {
  SafetensorsFile file;
  file.metadata = {{"spec", "{\"a\":\"\\u00e9\"}"}, {"epoch", "3"}};
  file.tensors = {{"w", DType::kF32, {2, 3}, std::string_view(bytes).substr(0, 24)},
                  {"empty", DType::kI64, {0}, {}},
                  {"b", DType::kU8, {}, std::string_view(bytes).substr(24, 1)}};
  return file;
}

TEST(SafetensorsTest, RoundTripsAndIsLaidOutAsTheFormatSays) {
  const std::string bytes = "0123456789abcdefghijklmnopq";
  const std::string text = WriteSafetensors(TwoTensors(bytes));
  std::uint64_t header = 0;
  for (int b = 7; b >= 0; --b) header = header << 8 | static_cast<unsigned char>(text[b]);
  EXPECT_EQ(header % 8, 0u);
  const auto json = nlohmann::json::parse(text.substr(8, header));
  EXPECT_EQ(json["w"],
            nlohmann::json({{"dtype", "F32"}, {"shape", {2, 3}}, {"data_offsets", {0, 24}}}));
  EXPECT_EQ(text.substr(8 + header), bytes.substr(0, 25));
  const SafetensorsResult result = ParseSafetensors(text);
  ASSERT_EQ(result.problem, "");
  const SafetensorsFile& read = result.file;
  EXPECT_EQ(read.metadata, TwoTensors(bytes).metadata);
  ASSERT_EQ(read.tensors.size(), 3u);
  EXPECT_EQ(read.Find("w")->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(read.Find("w")->dtype, DType::kF32);
  EXPECT_EQ(read.Find("w")->bytes, bytes.substr(0, 24));
  EXPECT_EQ(read.Find("b")->bytes, "o");
  EXPECT_EQ(read.Find("other"), nullptr);
}

// The sizes are those of the format's description.
TEST(SafetensorsTest, EveryTypeHasItsNameAndSize) {
  const struct {
    DType dtype;
    const char* name;
    std::size_t bytes;
  } types[] = {{DType::kF64, "F64", 8},   {DType::kF32, "F32", 4}, {DType::kF16, "F16", 2},
               {DType::kBF16, "BF16", 2}, {DType::kI64, "I64", 8}, {DType::kI32, "I32", 4},
               {DType::kI16, "I16", 2},   {DType::kI8, "I8", 1},   {DType::kU64, "U64", 8},
               {DType::kU32, "U32", 4},   {DType::kU16, "U16", 2}, {DType::kU8, "U8", 1},
               {DType::kBool, "BOOL", 1}};
  for (const auto& type : types) {
    EXPECT_EQ(NameOf(type.dtype), type.name);
    const std::string bytes(3 * type.bytes, 'x');
    SafetensorsFile file;
    file.tensors = {{"w", type.dtype, {3}, bytes}};
    const std::string text = WriteSafetensors(file);
    EXPECT_THAT(text, HasSubstr(std::string("\"dtype\":\"") + type.name + "\""));
    const SafetensorsResult read = ParseSafetensors(text);
    ASSERT_EQ(read.problem, "") << type.name;
    EXPECT_EQ(read.file.tensors.at(0).dtype, type.dtype);
    EXPECT_EQ(read.file.tensors.at(0).bytes, bytes);
  }
}

TEST(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string text = WriteSafetensors(TwoTensors("0123456789abcdefghijklmnopq"));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(ParseSafetensors(std::string_view(text).substr(0, size)).problem, "") << size;
  }
}

TEST(SafetensorsTest, ManyCorruptionsAreRefusedOrReadWithinTheText) {
  const std::string text = WriteSafetensors(TwoTensors("0123456789abcdefghijklmnopq"));
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'\0', '9', '"', '-', '\xff'}) {
      std::string corrupt = text;
      corrupt[at] = byte;
      for (const TensorEntry& tensor : ParseSafetensors(corrupt).file.tensors) {
        if (tensor.bytes.empty()) continue;
        EXPECT_GE(tensor.bytes.data(), corrupt.data());
        EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), corrupt.data() + corrupt.size());
      }
    }
  }
}

// A file with one tensor "w" of this shape and these offsets, and 8 bytes of data.
std::string OneTensor(const std::string& shape, const std::string& offsets) {
  return WithHeader(
      R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
      "abcdefgh");
}

std::string SaidOf(const std::string& text) { return ParseSafetensors(text).problem; }

TEST(SafetensorsTest, ShapesThatOverflowAreRefused) {
  for (const char* shape : {"[4294967296,4294967296]", "[-1]", "[9223372036854775807,4]", "[3]"}) {
    EXPECT_THAT(SaidOf(OneTensor(shape, "[0,4]")), HasSubstr("tensor \"w\"")) << shape;
  }
}

TEST(SafetensorsTest, SizesAndOffsetsAreIntegersFromZeroOn) {
  const std::string two = OneTensor("[2]", "[0,8]"), none = OneTensor("[0]", "[8,8]");
  EXPECT_EQ(ParseSafetensors(two).file.Find("w")->bytes, "abcdefgh");
  EXPECT_EQ(ParseSafetensors(none).file.Find("w")->bytes, "");
  for (const char* number : {"2.0", "2e0", "2.5", "-1", "-0.5", "1e300", "9223372036854775808",
                             "18446744073709551616", "\"2\"", "true", "null", "[2]"}) {
    EXPECT_THAT(SaidOf(OneTensor(std::string("[") + number + "]", "[0,8]")),
                HasSubstr("tensor \"w\": \"shape\" holds "))
        << number;
    for (const std::string& offsets :
         {std::string("[") + number + ",8]", std::string("[0,") + number + "]"}) {
      EXPECT_THAT(SaidOf(OneTensor("[2]", offsets)),
                  HasSubstr("tensor \"w\": \"data_offsets\" holds "))
          << offsets;
    }
  }
  EXPECT_EQ(SaidOf(OneTensor("[-1.5]", "[0,8]")),
            "tensor \"w\": \"shape\" holds -1.5; allowed: integers from 0 to 2^63 - 1");
  for (const auto& [offsets, count] :
       {std::pair<const char*, const char*>{"[]", "0"}, {"[0]", "1"}, {"[0,4,8]", "3"}}) {
    EXPECT_EQ(SaidOf(OneTensor("[2]", offsets)),
              std::string("tensor \"w\": \"data_offsets\" has ") + count + " numbers; allowed: 2");
  }
  for (const char* list : {"8", "{\"0\":0,\"1\":8}", "null"}) {
    EXPECT_EQ(SaidOf(OneTensor(list, "[0,8]")), "tensor \"w\": \"shape\" is not a list");
    EXPECT_EQ(SaidOf(OneTensor("[2]", list)), "tensor \"w\": \"data_offsets\" is not a list");
  }
}

// An `error` event could not be written with more.
TEST(SafetensorsTest, ALongNameIsNotPartOfAMessage) {
  const std::string name(100'000, 'n');
  for (const std::string& entry :
       {std::string(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,0]})"),
        R"({"dtype":")" + name + "\"}"}) {
    const std::string said = SaidOf(WithHeader("{\"" + name + "\":" + entry + "}", ""));
    EXPECT_THAT(said, HasSubstr(" of 100000 bytes"));
    EXPECT_LT(said.size(), 300u);
  }
}

// 4 bytes times 2^62 elements are 2^64, which is 0 in 64 bits.
TEST(SafetensorsTest, AHugeShapeDoesNotPassForAnEmptyOne) {
  EXPECT_EQ(SaidOf(OneTensor("[4611686018427387904]", "[0,0]")),
            "tensor \"w\" has an impossible shape");
  EXPECT_EQ(SaidOf(OneTensor("[2,9223372036854775807,2]", "[0,0]")),
            "tensor \"w\" has an impossible shape");
  EXPECT_EQ(SaidOf(OneTensor("[0,4611686018427387904]", "[0,0]")), "");
}

TEST(SafetensorsTest, AHeaderIsAtMostAHundredMegabytesAndWithinTheFile) {
  std::string text(8, '\0');
  const std::uint64_t size = kMaxSafetensorsHeader + 1;
  for (int b = 0; b < 8; ++b) text[b] = static_cast<char>(size >> (8 * b));
  EXPECT_EQ(SaidOf(text + "{}"), "shorter than its header");
  EXPECT_EQ(SaidOf(std::string("\3\0\0\0\0\0\0\0{}", 10)), "shorter than its header");
  EXPECT_EQ(SaidOf(std::string("\2\0\0\0\0\0\0\0{}", 10)), "");
}

}  // namespace
}  // namespace pelab
