// The formats that the trainer reads and writes: safetensors, whole files, the event stream,
// SHA-256, job documents.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

#include "core/base/sha256.h"
#include "core/experiment/canonical_json.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/worker/trainer/jobs_fixture.h"
#include "worker/trainer/limits.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/files.h"
#include "core/safetensors/safetensors.h"

namespace pelab::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Sha256, MatchesTheStandardsExamplesHoweverItIsFed) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1000000, 'a');
  const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  EXPECT_EQ(Sha256Hex(million), expected);
  Sha256 hash;
  for (std::size_t at = 0, step = 1; at < million.size(); at += step, step = step % 150 + 1) {
    hash.Update(std::string_view(million).substr(at, step));
  }
  EXPECT_EQ(hash.FinishHex(), expected);
  EXPECT_EQ(hash.FinishHex(), Sha256Hex("")) << "starts anew";
}

SafetensorsFile TwoTensors(const std::string& bytes) {
  SafetensorsFile file;
  file.metadata = {{"spec", "{\"a\":\"\\u00e9\"}"}, {"epoch", "3"}};
  file.tensors = {{"w", DType::kF32, {2, 3}, std::string_view(bytes).substr(0, 24)},
                  {"empty", DType::kI64, {0}, {}},
                  {"b", DType::kU8, {}, std::string_view(bytes).substr(24, 1)}};
  return file;
}

TEST(Safetensors, RoundTripsAndIsLaidOutAsTheFormatSays) {
  const std::string bytes = "0123456789abcdefghijklmnopq";
  const std::string text = WriteSafetensors(TwoTensors(bytes));
  std::uint64_t header = 0;
  for (int b = 7; b >= 0; --b) header = header << 8 | static_cast<unsigned char>(text[b]);
  EXPECT_EQ(header % 8, 0u);
  const auto json = nlohmann::json::parse(text.substr(8, header));
  EXPECT_EQ(json["w"],
            nlohmann::json({{"dtype", "F32"}, {"shape", {2, 3}}, {"data_offsets", {0, 24}}}));
  EXPECT_EQ(text.substr(8 + header), bytes.substr(0, 25));
  const SafetensorsFile read = ReadSafetensors(text);
  EXPECT_EQ(read.metadata.at("epoch"), "3");
  ASSERT_EQ(read.tensors.size(), 3u);
  EXPECT_EQ(read.Find("w")->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(read.Find("w")->bytes, bytes.substr(0, 24));
  EXPECT_EQ(read.Find("b")->bytes, "o");
  EXPECT_EQ(read.Find("other"), nullptr);
}

TEST(Safetensors, EveryTruncationAndManyCorruptionsAreRefusedOrRead) {
  const std::string text = WriteSafetensors(TwoTensors("0123456789abcdefghijklmnopq"));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(ReadSafetensors(std::string_view(text).substr(0, size)), TrainerError) << size;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'\0', '9', '"', '-', '\xff'}) {
      std::string corrupt = text;
      corrupt[at] = byte;
      try {
        for (const TensorEntry& tensor : ReadSafetensors(corrupt).tensors) {
          EXPECT_LE(tensor.bytes.size(), text.size());
        }
      } catch (const TrainerError& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kIo);
      }
    }
  }
}

TEST(Safetensors, ShapesThatOverflowAreRefused) {
  for (const char* shape : {"[4294967296,4294967296]", "[-1]", "[9223372036854775807,4]", "[3]"}) {
    std::string header =
        std::string(R"({"w":{"dtype":"F32","shape":)") + shape + R"(,"data_offsets":[0,4]}})";
    header.resize(80, ' ');
    const std::string text = std::string("\x50\0\0\0\0\0\0\0", 8) + header + "abcd";
    EXPECT_THAT([&] { ReadSafetensors(text); },
                ThrowsMessage<TrainerError>(HasSubstr("malformed safetensors file: tensor \"w\"")));
  }
}

// A file with one tensor "w" of this shape and these offsets, and 8 bytes of data.
std::string OneTensor(const std::string& shape, const std::string& offsets) {
  std::string header =
      R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  header.resize(120, ' ');
  return std::string("\x78\0\0\0\0\0\0\0", 8) + header + "abcdefgh";
}

TEST(Safetensors, SizesAndOffsetsAreIntegersFromZeroOn) {
  EXPECT_EQ(ReadSafetensors(OneTensor("[2]", "[0,8]")).Find("w")->bytes, "abcdefgh");
  EXPECT_EQ(ReadSafetensors(OneTensor("[0]", "[8,8]")).Find("w")->bytes, "");
  for (const char* number : {"2.0", "2e0", "2.5", "-1", "-0.5", "1e300", "9223372036854775808",
                             "18446744073709551616", "\"2\"", "true", "null", "[2]"}) {
    EXPECT_THAT([&] { ReadSafetensors(OneTensor(std::string("[") + number + "]", "[0,8]")); },
                ThrowsMessage<TrainerError>(HasSubstr("tensor \"w\": \"shape\" holds ")))
        << number;
    for (const std::string& offsets :
         {std::string("[") + number + ",8]", std::string("[0,") + number + "]"}) {
      EXPECT_THAT([&] { ReadSafetensors(OneTensor("[2]", offsets)); },
                  ThrowsMessage<TrainerError>(HasSubstr("tensor \"w\": \"data_offsets\" holds ")))
          << offsets;
    }
  }
  EXPECT_THAT(
      [&] { ReadSafetensors(OneTensor("[-1.5]", "[0,8]")); },
      ThrowsMessage<TrainerError>(HasSubstr("holds -1.5; allowed: integers from 0 to 2^63 - 1")));
  for (const char* offsets : {"[]", "[0]", "[0,4,8]"}) {
    EXPECT_THAT([&] { ReadSafetensors(OneTensor("[2]", offsets)); },
                ThrowsMessage<TrainerError>(HasSubstr("numbers; allowed: 2")))
        << offsets;
  }
  for (const char* list : {"8", "{\"0\":0,\"1\":8}", "null"}) {
    EXPECT_THAT([&] { ReadSafetensors(OneTensor(list, "[0,8]")); },
                ThrowsMessage<TrainerError>(HasSubstr("\"shape\" is not a list")));
    EXPECT_THAT([&] { ReadSafetensors(OneTensor("[2]", list)); },
                ThrowsMessage<TrainerError>(HasSubstr("\"data_offsets\" is not a list")));
  }
}

// An `error` event could not be written with more.
TEST(Safetensors, ALongNameIsNotPartOfAMessage) {
  const std::string name(100'000, 'n');
  for (const std::string& entry :
       {std::string(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,0]})"),
        R"({"dtype":")" + name + "\"}"}) {
    const std::string header = "{\"" + name + "\":" + entry + "}";
    std::string text(8, '\0');
    for (int b = 0; b < 8; ++b) text[b] = static_cast<char>(header.size() >> (8 * b));
    EXPECT_THAT([&] { ReadSafetensors(text + header); },
                ThrowsMessage<TrainerError>(testing::AllOf(
                    HasSubstr(" of 100000 bytes"),
                    testing::ResultOf([](const std::string& what) { return what.size(); },
                                      testing::Lt(300U)))));
  }
}

// 4 bytes times 2^62 elements are 2^64, which is 0 in 64 bits.
TEST(Safetensors, AHugeShapeDoesNotPassForAnEmptyOne) {
  EXPECT_THAT([&] { ReadSafetensors(OneTensor("[4611686018427387904]", "[0,0]")); },
              ThrowsMessage<TrainerError>(HasSubstr("tensor \"w\" has an impossible shape")));
  EXPECT_THAT([&] { ReadSafetensors(OneTensor("[2,9223372036854775807,2]", "[0,0]")); },
              ThrowsMessage<TrainerError>(HasSubstr("tensor \"w\" has an impossible shape")));
  EXPECT_EQ(ReadSafetensors(OneTensor("[0,4611686018427387904]", "[0,0]")).tensors.size(), 1U);
}

TEST(Files, AreReplacedWholeAndNamedByTheirHash) {
  const TempDir folder;
  WriteFileAtomically(folder.path(), "f", "old");
  const FileInfo info = WriteFileAtomically(folder.path(), "f", std::string("abc"));
  EXPECT_EQ(info.name, "f");
  EXPECT_EQ(info.bytes, 3u);
  EXPECT_EQ(info.sha256, Sha256Hex("abc"));
  EXPECT_EQ(ReadFile(folder / "f"), "abc");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++files;
  EXPECT_EQ(files, 1u) << "no temporary file stays";
  EXPECT_THAT(
      [&] { WriteFileAtomically(folder / "missing", "f", ""); },
      ThrowsMessage<TrainerError>(HasSubstr("cannot create " + folder.path() + "/missing/f")));
  EXPECT_THAT([&] { ReadFile(folder / "missing"); },
              ThrowsMessage<TrainerError>(HasSubstr("cannot read " + folder.path() + "/missing")));
}

TEST(EventStream, WritesOneObjectALine) {
  const TempDir folder;
  const int fd = open((folder / "events").c_str(), O_WRONLY | O_CREAT, 0600);
  EventStream events(fd, "a\nb");
  events.Emit("epoch", {{"epoch", 0}, {"train_loss", 0.1}, {"text", "line\nbreak \xff"}});
  events.Emit("done", nlohmann::ordered_json::object());
  close(fd);
  const std::string text = ReadWhole(folder / "events");
  EXPECT_THAT(text,
              testing::StartsWith(R"({"event":"epoch","job":"a\nb","epoch":0,"train_loss":0.1,)"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_TRUE(nlohmann::json::accept(text.substr(0, text.find('\n'))));
}

TEST(EventStream, RefusesALineThatIsTooLong) {
  const TempDir folder;
  const int fd = open((folder / "events").c_str(), O_WRONLY | O_CREAT, 0600);
  EventStream events(fd, "j");
  EXPECT_THROW(events.Emit("x", {{"text", std::string(limits::kLineBytes, 'a')}}), TrainerError);
  close(fd);
  EXPECT_EQ(ReadWhole(folder / "events"), "") << "nothing of it is written";
}

TEST(EventStream, SaysThatItCannotWrite) {
  EventStream events(-1, "j");
  EXPECT_THAT([&] { events.Emit("x", nlohmann::ordered_json::object()); },
              ThrowsMessage<TrainerError>(HasSubstr("cannot write an event")));
}

TEST(CudaCheck, JobIsThePaperSizeJobWithFewerEpochs) {
  const std::string text = ReadWhole(std::string(PELAB_SOURCE_DIR) + "/deploy/cuda-check-job.json");
  const experiment::JobDocumentResult read = experiment::FromJobDocument(text);
  for (const auto& violation : read.violations)
    ADD_FAILURE() << experiment::Format(violation, "cuda-check-job.json");
  ASSERT_TRUE(read.document);
  EXPECT_EQ(read.document->job_id, "cuda-check");
  experiment::Job expected = experiment::MakeJob("clean", "rope", "distance", 0);
  EXPECT_GT(expected.Int("train.epochs"), read.document->job.Int("train.epochs"));
  expected.values["train.epochs"] = read.document->job.Int("train.epochs");
  EXPECT_EQ(experiment::ToCanonicalJson(read.document->job), experiment::ToCanonicalJson(expected));
}

}  // namespace
}  // namespace pelab::trainer
