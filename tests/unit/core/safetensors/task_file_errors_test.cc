// Wrong and hostile files of data, each with the whole sentence that says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/safetensors/task_file.h"
#include "tests/support/data_file.h"

namespace pelab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct WrongData {
  const char* name;
  std::function<void(DataFile&)> change;  // of SmallData
  std::string problem;
};
void PrintTo(const WrongData& wrong, std::ostream* out) { *out << wrong.name; }

const char kIntegers[] =
    "; allowed: integers of at most 64 bits with a sign, or of at most 32 bits without one";
const char kName[] =
    " must be a lower-case letter, then up to 39 lower-case letters, digits or underscores";
const char kSplits[] =
    "metadata splits must be a JSON list of names, [\"train\", \"test\"], with train among them; a "
    "number in split is a place in it";
const char kChance[] = "metadata chance must be a number from 0 to 1";
const char kClassNames[] =
    "metadata class_names must be a JSON list of 2 texts of at most 100 bytes, one for each class";
const char kWords[] =
    "metadata words must be a JSON object such as {\"5\": \"open\"}: token ids from 0 to 7 with "
    "texts of at most 100 bytes";

std::function<void(DataFile&)> Metadata(const char* name, std::string text) {
  return [=](DataFile& file) { file.metadata[name] = text; };
}

// SmallData with one number of a tensor changed.
template <typename Number = std::int32_t>
std::function<void(DataFile&)> Element(const char* name, std::size_t index, Number value) {
  return [=](DataFile& file) {
    DataFile::Tensor& tensor = file.tensors.at(name);
    std::vector<Number> numbers;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += 4) {
      std::int32_t number = 0;
      std::memcpy(&number, tensor.bytes.data() + at, 4);
      numbers.push_back(static_cast<Number>(number));
    }
    numbers.at(index) = value;
    file.Set(name, std::vector<std::int64_t>(tensor.shape), numbers);
  };
}

std::function<void(DataFile&)> Both(std::function<void(DataFile&)> one,
                                    std::function<void(DataFile&)> two) {
  return [=](DataFile& file) {
    one(file);
    two(file);
  };
}

void MakeByPosition(DataFile& file) { file = SmallDataByPosition(); }

std::string ManySplits(int count) {
  std::string names = "[\"train\"";
  for (int i = 1; i < count; ++i) names += ",\"s" + std::to_string(i) + "\"";
  return names + "]";
}

std::vector<WrongData> WrongTensors() {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  return {
      {"tokens_of_one_dimension", [](DataFile& f) { f.tensors["tokens"].shape = {24}; },
       "tokens has the shape (24); allowed: (N, T), a row for each example"},
      {"tokens_of_three_dimensions",
       [](DataFile& f) {
         f.tensors["tokens"].shape = {6, 2, 2};
       },
       "tokens has the shape (6, 2, 2); allowed: (N, T), a row for each example"},
      {"tokens_of_no_dimension", [](DataFile& f) { f.Set<std::int32_t>("tokens", {}, {1}); },
       "tokens has the shape (); allowed: (N, T), a row for each example"},
      {"floats", [](DataFile& f) { f.tensors["tokens"].dtype = DType::kF32; },
       std::string("tokens has the type F32") + kIntegers},
      {"doubles",
       [](DataFile& f) {
         f.Set<double>("targets", {6}, {1, 0, 1, 0, 1, 0});
       },
       std::string("targets has the type F64") + kIntegers},
      {"halves",
       [](DataFile& f) {
         f.Set<std::uint16_t>("split", {6}, {0, 1, 0, 0, 1, 1}, DType::kF16);
       },
       std::string("split has the type F16") + kIntegers},
      {"brain_floats",
       [](DataFile& f) {
         f.Set<std::uint16_t>("lengths", {6}, {4, 4, 4, 4, 4, 4}, DType::kBF16);
       },
       std::string("lengths has the type BF16") + kIntegers},
      {"large_unsigned",
       [](DataFile& f) {
         f.Set<std::uint64_t>("targets", {6}, {1, 0, 1, 0, 1, 0});
       },
       std::string("targets has the type U64") + kIntegers},
      {"no_tokens", [](DataFile& f) { f.tensors.erase("tokens"); },
       "the file has no tensor tokens; it has \"split\", \"targets\""},
      {"no_targets", [](DataFile& f) { f.tensors.erase("targets"); },
       "the file has no tensor targets; it has \"split\", \"tokens\""},
      {"no_split", [](DataFile& f) { f.tensors.erase("split"); },
       "the file has no tensor split; it has \"targets\", \"tokens\""},
      {"no_tensors", [](DataFile& f) { f.tensors.clear(); },
       "the file has no tensor tokens; it has nothing"},
      {"slip_of_a_tensor",
       [](DataFile& f) { f.tensors["target"] = f.tensors.extract("targets").mapped(); },
       "the file has a tensor \"target\"; did you mean targets?"},
      {"slip_beside_the_right_one", [](DataFile& f) { f.Set<std::int32_t>("lenghts", {6}, {4}); },
       "this is no safetensors file: tensor \"lenghts\" has another size than its shape"},
      {"slip_of_lengths",
       [](DataFile& f) {
         f.Set<std::int32_t>("lenghts", {6}, {4, 4, 4, 4, 4, 3});
       },
       "the file has a tensor \"lenghts\"; did you mean lengths?"},
      {"slip_of_metadata", Metadata("repeat", "allowed"),
       "the file has metadata \"repeat\"; did you mean repeats?"},
      {"negative_token", Element("tokens", 1, -1), "tokens[0, 1] is -1; allowed: 0 to 999999"},
      {"smallest_token", Element("tokens", 23, std::numeric_limits<std::int64_t>::min()),
       "tokens[5, 3] is -9223372036854775808; allowed: 0 to 999999"},
      {"token_beyond_every_vocabulary", Element("tokens", 0, 1'000'000),
       "tokens[0, 0] is 1000000; allowed: 0 to 999999"},
      {"token_that_wraps", Element("tokens", 0, std::int64_t{1} << 32),
       "tokens[0, 0] is 4294967296; allowed: 0 to 999999"},
      {"token_beyond_the_vocabulary", Both(Element("tokens", 6, 9), Metadata("vocabulary", "9")),
       "tokens[1, 2] is 9; allowed: 0 to 8 (metadata vocabulary)"},
      {"label_beyond_the_classes", Both(Element("targets", 3, 2), Metadata("classes", "2")),
       "targets[3] is 2; allowed: 0 to 1 (metadata classes)"},
      {"label_beyond_all_classes", Element("targets", 3, kLargest),
       "targets[3] is 9223372036854775807; allowed: 0 to 999999"},
      {"label_below_the_first", Metadata("first_label", "1"),
       "targets[1] is 0; allowed: 1 to 1000000"},
      {"no_target_of_a_sequence", Element("targets", 2, -1),
       "targets[2] is -1; allowed: 0 to 999999"},
      {"length_of_zero",
       [](DataFile& f) {
         f.Set<std::int8_t>("lengths", {6}, {4, 4, 4, 4, 0, 4});
       },
       "lengths[4] is 0; allowed: 1 to 4"},
      {"negative_length",
       [](DataFile& f) {
         f.Set<std::int8_t>("lengths", {6}, {4, -1, 4, 4, 0, 4});
       },
       "lengths[1] is -1; allowed: 1 to 4"},
      {"length_above_t",
       [](DataFile& f) {
         f.Set<std::int8_t>("lengths", {6}, {4, 4, 4, 4, 4, 5});
       },
       "lengths[5] is 5; allowed: 1 to 4"},
      {"too_few_lengths",
       [](DataFile& f) {
         f.Set<std::int8_t>("lengths", {5}, {4, 4, 4, 4, 4});
       },
       "lengths has the shape (5); allowed: (6), a number of tokens for each example"},
      {"split_number_too_large", Element("split", 5, 2),
       "split[5] is 2; allowed: 0 to 1, the places of train, test (metadata splits)"},
      {"split_number_negative", Element("split", 0, -1),
       "split[0] is -1; allowed: 0 to 1, the places of train, test (metadata splits)"},
      {"split_of_two_dimensions",
       [](DataFile& f) {
         f.tensors["split"].shape = {6, 1};
       },
       "split has the shape (6, 1); allowed: (6), a split for each example"},
      {"no_training_example",
       [](DataFile& f) {
         f.Set<std::int8_t>("split", {6}, {1, 1, 1, 1, 1, 1});
       },
       "the split train has no example"},
      {"no_test_example",
       [](DataFile& f) {
         f.Set<std::int8_t>("split", {6}, {0, 0, 0, 0, 0, 0});
       },
       "the split test has no example"},
      {"a_split_without_examples", Metadata("splits", R"(["train","test","long"])"),
       "the split long has no example"},
      {"too_few_targets",
       [](DataFile& f) {
         f.Set<std::int32_t>("targets", {5}, {1, 0, 1, 0, 1});
       },
       "targets has the shape (5); allowed: (6), a target for each example"},
      {"targets_of_three_dimensions",
       [](DataFile& f) {
         f.Set<std::int32_t>("targets", {6, 1, 1}, {1, 0, 1, 0, 1, 0});
       },
       "targets has the shape (6, 1, 1); allowed: (6), a target for each example"},
      {"targets_of_one_column",
       [](DataFile& f) {
         f.Set<std::int32_t>("targets", {6, 1}, {1, 0, 1, 0, 1, 0});
       },
       "targets has the shape (6, 1); allowed: (6, 4), a target for each position, as tokens"},
      {"one_token",
       [](DataFile& f) {
         f.Set<std::int8_t>("tokens", {6, 1}, {1, 2, 3, 4, 5, 6});
       },
       "the length of tokens is 1; allowed: an integer from 2 to 8192"},
      {"too_long",
       [](DataFile& f) {
         f.Set("tokens", {2, 8193}, std::vector<std::uint8_t>(2 * 8193));
       },
       "the length of tokens is 8193; allowed: an integer from 2 to 8192"},
      {"one_row",
       [](DataFile& f) {
         f.Set<std::int8_t>("tokens", {1, 4}, {1, 2, 3, 4});
       },
       "tokens has 1 rows; allowed: 2 to 134217728, so that they hold at most 2^29 tokens"},
      {"no_rows",
       [](DataFile& f) {
         f.Set<std::int8_t>("tokens", {0, 4}, {});
       },
       "tokens has 0 rows; allowed: 2 to 134217728, so that they hold at most 2^29 tokens"},
      {"endless_length",
       [](DataFile& f) {
         f.Set<std::int8_t>("tokens", {0, std::int64_t{1} << 62}, {});
       },
       "the length of tokens is 4611686018427387904; allowed: an integer from 2 to 8192"},
      {"a_repeat",
       [](DataFile& f) {
         f.Set<std::int32_t>("tokens", {6, 4}, {1, 2, 3, 4, 5, 6, 7, 1, 2, 2, 2, 2,
                                                3, 1, 3, 1, 2, 2, 2, 2, 6, 5, 4, 3});
       },
       "1 of 3 examples of test are in train, too (row 4 of the file, of test, has the tokens of "
       "row 2, of train); allowed: none, or any number with the metadata repeats: allowed "
       "(repeats_allowed=True)"},
      {"repeats_of_two_splits",
       [](DataFile& f) {
         f.metadata["splits"] = R"(["train","test","long"])";
         f.Set<std::int32_t>("split", {6}, {0, 2, 0, 0, 1, 2});
         f.Set<std::int32_t>("tokens", {6, 4}, {1, 2, 3, 4, 3, 1, 3, 1, 2, 2, 2, 2,
                                                3, 1, 3, 1, 2, 2, 2, 2, 1, 2, 3, 4});
       },
       "1 of 1 examples of test, 2 of 2 examples of long are in train, too (row 1 of the file, of "
       "long, has the tokens of row 3, of train); allowed: none, or any number with the metadata "
       "repeats: allowed (repeats_allowed=True)"},
  };
}

std::vector<WrongData> WrongPositions() {
  return {
      {"no_label_and_not_none", Both(MakeByPosition, Element("targets", 9, -2)),
       "targets[2, 1] is -2; allowed: 0 to 999999, or -1 for none"},
      {"position_beyond_the_classes", Both(MakeByPosition, Metadata("classes", "2")),
       "targets[0, 0] is 2; allowed: 0 to 1 (metadata classes), or -1 for none"},
      {"negative_first_label", Both(MakeByPosition, Metadata("first_label", "-1")),
       "first_label is -1; allowed: 0 or more, because the target -1 says that a position has "
       "none"},
      {"first_label_above", Both(MakeByPosition, Metadata("first_label", "1")),
       "targets[0, 2] is 0; allowed: 1 to 1000000, or -1 for none"},
      {"no_target_in_test",
       Both(MakeByPosition,
            [](DataFile& f) {
              f.Set<std::int32_t>("targets", {6, 4}, {2, -1, 0,  2, -1, -1, 0,  0,  -1, -1, 1, -1,
                                                      2, 1,  -1, 0, -1, -1, -1, -1, -1, 0,  0, 0});
            }),
       "no position of the split test has a target"},
      {"no_target_in_train",
       Both(MakeByPosition,
            [](DataFile& f) {
              f.Set<std::int32_t>("targets", {6, 4}, {-1, -1, -1, -1, 0,  2, 0,  0, -1, -1, -1, -1,
                                                      -1, -1, -1, 0,  -1, 2, -1, 1, 1,  0,  0,  0});
            }),
       "no position of the split train has a target"},
      {"no_target_at_all",
       Both(MakeByPosition,
            [](DataFile& f) {
              f.Set("targets", {6, 4}, std::vector<std::int8_t>(24, -1));
            }),
       "no position of the split train has a target"},
  };
}

std::vector<WrongData> WrongMetadata() {
  const std::string two_to_32 = std::string(kSplits) + "; it has 2 to 32 names";
  std::vector<WrongData> all = {
      {"vocabulary_too_small", Metadata("vocabulary", "7"),
       "tokens[1, 2] is 7; allowed: 0 to 6 (metadata vocabulary)"},
      {"no_vocabulary", Metadata("vocabulary", "0"),
       "vocabulary is 0; allowed: an integer from 1 to 1000000"},
      {"vocabulary_too_large", Metadata("vocabulary", "1000001"),
       "vocabulary is 1000001; allowed: an integer from 1 to 1000000"},
      {"no_classes", Metadata("classes", "0"),
       "classes is 0; allowed: an integer from 1 to 1000000"},
      {"first_label_too_large", Metadata("first_label", "1000001"),
       "first_label is 1000001; allowed: an integer from -1000000 to 1000000"},
      {"first_label_too_small", Metadata("first_label", "-1000001"),
       "first_label is -1000001; allowed: an integer from -1000000 to 1000000"},
      {"name_with_capitals", Metadata("name", "My data"),
       std::string("the name \"My data\"") + kName},
      {"empty_name", Metadata("name", ""), std::string("the name \"\"") + kName},
      {"long_name", Metadata("name", std::string(100, 'a')),
       "the name \"" + std::string(60, 'a') + "…\"" + kName},
      {"unknown_repeats", Metadata("repeats", "yes"),
       "metadata repeats must be allowed or refused"},
      {"splits_are_a_number", Metadata("splits", "5"), two_to_32},
      {"splits_are_no_json", Metadata("splits", "train,test"), two_to_32},
      {"splits_are_empty", Metadata("splits", ""), two_to_32},
      {"splits_are_an_object", Metadata("splits", R"({"train":0,"test":1})"), two_to_32},
      {"splits_are_too_few", Metadata("splits", R"(["train"])"), two_to_32},
      {"splits_are_too_many", Metadata("splits", ManySplits(33)), two_to_32},
      {"splits_without_train", Metadata("splits", R"(["learn","test"])"),
       "the splits are learn, test; allowed: train and at least one more"},
      {"splits_with_a_slip", Metadata("splits", R"(["trian","test"])"),
       "the splits are trian, test; allowed: train and at least one more; did you mean train with "
       "trian?"},
      {"splits_with_a_number", Metadata("splits", R"(["train",1])"), kSplits},
      {"splits_with_a_name_twice", Metadata("splits", R"(["train","test","test"])"),
       "metadata splits has a name twice"},
      {"splits_with_train_twice", Metadata("splits", R"(["train","train"])"),
       "metadata splits has a name twice"},
      {"splits_with_a_bad_name", Metadata("splits", R"(["train","Test"])"),
       std::string("the split \"Test\"") + kName},
      {"splits_with_a_control_character", Metadata("splits", R"(["train","te\nst"])"),
       std::string("the split \"te\nst\"") + kName},
      {"too_few_class_names", Metadata("class_names", R"(["even"])"), kClassNames},
      {"too_many_class_names", Metadata("class_names", R"(["a","b","c"])"), kClassNames},
      {"class_names_no_list", Metadata("class_names", R"({"a":"b","c":"d"})"), kClassNames},
      {"class_names_no_json", Metadata("class_names", "even, odd"), kClassNames},
      {"class_names_numbers", Metadata("class_names", "[0,1]"), kClassNames},
      {"class_name_too_long", Metadata("class_names", "[\"a\",\"" + std::string(101, 'b') + "\"]"),
       kClassNames},
      {"words_no_object", Metadata("words", R"(["a"])"), kWords},
      {"words_no_json", Metadata("words", "5: open"), kWords},
      {"word_too_long", Metadata("words", "{\"5\":\"" + std::string(101, 'b') + "\"}"), kWords},
      {"word_no_text", Metadata("words", R"({"5":1})"), kWords},
  };
  for (const char* number :
       {"many", "16.0", " 16", "+16", "", "16 ", "0x10", "1e3", "99999999999999999999"}) {
    for (const char* name : {"vocabulary", "classes", "first_label"}) {
      all.push_back({"no_integer", Metadata(name, number),
                     std::string("metadata ") + name + " must be an integer in decimal digits"});
    }
  }
  for (const char* chance : {"2", "1.0000001", "-0.1", "nan", "inf", "-inf", "half", "", "0.5 ",
                             " 0.5", "1e999", "50%"}) {
    all.push_back({"chance", Metadata("chance", chance), kChance});
  }
  for (const char* id : {"8", "-1", "x", "", "1.0", " 1", "99999999999999999999"}) {
    all.push_back({"word_id", Metadata("words", std::string("{\"") + id + "\":\"a\"}"), kWords});
  }
  return all;
}

class WrongDataTest : public testing::TestWithParam<WrongData> {};

TEST_P(WrongDataTest, IsRefusedWithASentence) {
  DataFile file = SmallData();
  GetParam().change(file);
  EXPECT_EQ(ParseTaskFile(file.Bytes()).problem, GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(Tensors, WrongDataTest, testing::ValuesIn(WrongTensors()));
INSTANTIATE_TEST_SUITE_P(Positions, WrongDataTest, testing::ValuesIn(WrongPositions()));
INSTANTIATE_TEST_SUITE_P(Metadata, WrongDataTest, testing::ValuesIn(WrongMetadata()));

std::string ProblemOf(const std::string& bytes) { return ParseTaskFile(bytes).problem; }

TEST(WrongBytesTest, AreNoSafetensorsFile) {
  const std::string no = "this is no safetensors file: ";
  EXPECT_EQ(ProblemOf(""), no + "shorter than its header size");
  EXPECT_EQ(ProblemOf("1234567"), no + "shorter than its header size");
  EXPECT_EQ(ProblemOf("tokens,targets\n1,0\n"), no + "shorter than its header");
  EXPECT_EQ(ProblemOf(std::string(8, '\xff')), no + "shorter than its header");
  EXPECT_EQ(ProblemOf(std::string(8, '\0')), no + "the header is no JSON object");
  EXPECT_EQ(ProblemOf(WithHeader("[]")), no + "the header is no JSON object");
  EXPECT_EQ(ProblemOf(WithHeader("{")), no + "the header is no JSON object");
  const std::string whole = SmallData().Bytes();
  EXPECT_EQ(ProblemOf(std::string("\xff\xff\0\0\0\0\0\0", 8) + whole.substr(8)),
            no + "shorter than its header");
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(ProblemOf(WithHeader("{\"tokens\":" + deep + "}")),
            no + "the header is no JSON object");
  EXPECT_EQ(ProblemOf(WithHeader("{}")), "the file has no tensor tokens; it has nothing");
}

TEST(WrongBytesTest, TensorsLieWithinTheData) {
  const auto problem = [](const std::string& type, const std::string& shape,
                          const std::string& offsets) {
    return ProblemOf(WithHeader("{\"tokens\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
                                    ",\"data_offsets\":" + offsets + "}}",
                                std::string(24, '\1')));
  };
  const std::string no = "this is no safetensors file: ";
  EXPECT_EQ(problem("I32", "[2,3]", "[0,24]"), "the file has no tensor targets; it has \"tokens\"");
  EXPECT_EQ(problem("I32", "[2,3]", "[1,25]"), no + "tensor \"tokens\" is cut off");
  EXPECT_EQ(problem("I32", "[2,3]", "[24,0]"), no + "tensor \"tokens\" is cut off");
  EXPECT_EQ(problem("I32", "[2,3]", "[9223372036854775800,9223372036854775807]"),
            no + "tensor \"tokens\" is cut off");
  EXPECT_EQ(problem("I32", "[2,2]", "[0,24]"),
            no + "tensor \"tokens\" has another size than its shape");
  EXPECT_EQ(problem("I64", "[2,3]", "[0,24]"), no + "tensor \"tokens\" has an impossible shape");
  EXPECT_EQ(problem("I32", "[4294967296,4294967296]", "[0,0]"),
            no + "tensor \"tokens\" has an impossible shape");
  EXPECT_EQ(problem("I8", "[9223372036854775807,2]", "[0,24]"),
            no + "tensor \"tokens\" has an impossible shape");
  EXPECT_EQ(problem("I128", "[2,3]", "[0,24]"), no + "unknown type \"I128\"");
  EXPECT_THAT(problem("I32", "[-2,-3]", "[0,24]"),
              StartsWith(no + "tensor \"tokens\": \"shape\" holds -2; allowed: integers"));
}

TEST(WrongBytesTest, AHeaderOfOtherThingsIsRefused) {
  const std::string no = "this is no safetensors file: ";
  for (const char* header : {R"({"__metadata__":{"name":1}})", R"({"__metadata__":[]})",
                             R"({"tokens":1})", R"({"tokens":{"shape":[],"data_offsets":[0,0]}})",
                             R"({"tokens":{"dtype":8,"shape":[],"data_offsets":[0,0]}})",
                             R"({"tokens":{"dtype":"I8","data_offsets":[0,0]}})"}) {
    EXPECT_THAT(ProblemOf(WithHeader(header)), StartsWith(no + "[json.exception.")) << header;
  }
}

// Two tensors may share their bytes. They are only read, so this does no harm.
TEST(WrongBytesTest, TensorsThatOverlapAreReadAsTheyAre) {
  const std::string header = R"({"tokens":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},)"
                             R"("targets":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("split":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  const TaskFileResult result = ParseTaskFile(WithHeader(header, std::string("\5\6\0\1", 4)));
  ASSERT_EQ(result.problem, "");
  EXPECT_THAT(result.file.tokens, testing::ElementsAre(5, 6, 0, 1));
  EXPECT_THAT(result.file.targets, testing::ElementsAre(5, 6));
  EXPECT_THAT(result.file.split, testing::ElementsAre(0, 1));
}

TEST(WrongBytesTest, EveryTruncationIsRefused) {
  const std::string whole = SmallDataByPosition().Bytes();
  ASSERT_EQ(ProblemOf(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(ProblemOf(whole.substr(0, size)), "") << size;
  }
}

// Each byte of a good file is changed. A changed file is refused, or its parts still agree.
TEST(WrongBytesTest, EveryChangedByteIsRefusedOrRead) {
  const std::string whole = SmallDataByPosition().Bytes();
  int refused = 0, read = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\0', '1', '9', '"', '-', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      const TaskFileResult result = ParseTaskFile(changed);
      if (!result.problem.empty()) {
        ++refused;
        continue;
      }
      ++read;
      const TaskFile& file = result.file;
      const auto examples = static_cast<std::size_t>(file.examples());
      const auto length = static_cast<std::size_t>(file.declared.length);
      ASSERT_EQ(file.tokens.size(), examples * length) << at;
      ASSERT_EQ(file.targets.size(), file.declared.by_position ? examples * length : examples);
      ASSERT_EQ(file.split.size(), examples) << at;
      for (const std::int32_t split : file.split) {
        ASSERT_TRUE(split >= 0 && split < static_cast<std::int32_t>(file.declared.splits.size()));
      }
      for (const std::int32_t token : file.tokens) {
        ASSERT_TRUE(token >= 0 && token < file.declared.vocabulary) << at;
      }
      for (const std::int32_t target : file.targets) {
        ASSERT_TRUE(target == kNoTarget || (target >= 0 && target < file.declared.classes)) << at;
      }
      ASSERT_EQ(experiment::ParseOwnTask(experiment::ToJson(file.declared)).problem, "") << at;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(read, 0);
}

// A message is for people and for events, so long names are cut.
TEST(WrongBytesTest, MessagesAreShort) {
  DataFile file;
  for (int i = 0; i < 300; ++i) {
    file.Set<std::int8_t>(std::string(200, 'n') + std::to_string(i), {1}, {1});
  }
  const std::string problem = ProblemOf(file.Bytes());
  EXPECT_THAT(problem, StartsWith("the file has no tensor tokens; it has \"nnnn"));
  EXPECT_LT(problem.size(), 1000u);
}

}  // namespace
}  // namespace pelab
