// The formats that the trainer reads and writes: whole files, the event stream, SHA-256, job
// documents, and what it says of malformed safetensors files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

#include "core/base/sha256.h"
#include "core/experiment/canonical_json.h"
#include "core/safetensors/safetensors.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/worker/trainer/jobs_fixture.h"
#include "worker/trainer/limits.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/files.h"

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

// core/safetensors/safetensors_test.cc has the tests of the format.
TEST(Safetensors, AMalformedFileIsAnIoError) {
  const std::string bytes = "0123";
  SafetensorsFile file;
  file.tensors = {{"w", DType::kF32, {1}, bytes}};
  const std::string text = WriteSafetensors(file);
  EXPECT_EQ(ReadSafetensors(text).Find("w")->bytes, bytes);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, text.size() / 2, text.size() - 1}) {
    try {
      ReadSafetensors(std::string_view(text).substr(0, size));
      ADD_FAILURE() << size;
    } catch (const TrainerError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_THAT(error.what(), testing::StartsWith("malformed safetensors file: "));
    }
  }
  EXPECT_THAT([&] { ReadSafetensors(std::string_view(text).substr(0, text.size() - 1)); },
              ThrowsMessage<TrainerError>(
                  testing::StrEq("malformed safetensors file: tensor \"w\" is cut off")));
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
