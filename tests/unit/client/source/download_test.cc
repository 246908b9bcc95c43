#include "client/source/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/sha256.h"
#include "tests/support/temp_dir.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;

// A source with a single file, which it delivers in two pieces.
class OneFile final : public DataSource {
 public:
  absl::Status ReadArtifact(
      const std::string& sha256,
      const std::function<absl::Status(const std::string& piece)>& on_piece) override {
    if (sha256 != Sha256Hex("weights")) return absl::NotFoundError("no stored file");
    absl::Status status = on_piece("wei");
    if (!status.ok()) return status;
    if (breaks_) return absl::UnavailableError("lost the coordinator");
    for (; endless_ && sent_ < kEnough && status.ok(); ++sent_) status = on_piece("w");
    if (endless_) return status;
    return on_piece(damaged_ ? "GHTS" : "ghts");
  }
  void Break() { breaks_ = true; }
  void Damage() { damaged_ = true; }
  void NeverEnd() { endless_ = true; }
  int sent() const { return sent_; }

  absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string&, int) override { return None(); }
  std::string Description() const override { return "one file"; }

 private:
  absl::Status Use(const std::function<absl::Status(db::RowReader&)>&) override { return None(); }
  static absl::Status None() { return absl::UnimplementedError("only files"); }
  bool breaks_ = false;
  bool damaged_ = false;
  static constexpr int kEnough = 1000;
  bool endless_ = false;
  int sent_ = 0;  // pieces of one byte after the first piece
};

class DownloadTest : public ::testing::Test {
 protected:
  DownloadTest() {
    row_.set_job_id(12);
    row_.set_name("weights.safetensors");
    row_.set_sha256(Sha256Hex("weights"));
    row_.set_bytes(7);
  }
  std::string Text(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::size_t Files() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      static_cast<void>(entry);
      ++count;
    }
    return count;
  }

  TempDir folder_;
  std::string out_ = folder_.path() + "/out";
  OneFile source_;
  v1::ArtifactRow row_;
};

TEST_F(DownloadTest, WritesTheWholeFile) {
  EXPECT_TRUE(Download(source_, row_, out_, false).ok());
  EXPECT_EQ(Text(out_), "weights");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(DownloadTest, ReplacesOnlyByForce) {
  std::ofstream(out_) << "mine";
  const absl::Status refused = Download(source_, row_, out_, false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--force"));
  EXPECT_EQ(Text(out_), "mine");
  EXPECT_TRUE(Download(source_, row_, out_, true).ok());
  EXPECT_EQ(Text(out_), "weights");
}

TEST_F(DownloadTest, ADamagedFileIsNotKept) {
  source_.Damage();
  const absl::Status status = Download(source_, row_, out_, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(row_.sha256()));
  EXPECT_EQ(Files(), 0u);
}

TEST_F(DownloadTest, ASourceIsStoppedAtTheSizeOfTheFile) {
  source_.NeverEnd();
  const absl::Status status = Download(source_, row_, out_, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("one file sends more than the 7 bytes"));
  EXPECT_EQ(source_.sent(), 5);  // three and five bytes: one more than there should be
  EXPECT_EQ(Files(), 0u);
}

TEST_F(DownloadTest, ABrokenConnectionLeavesWhatWasThere) {
  std::ofstream(out_) << "mine";
  source_.Break();
  EXPECT_EQ(Download(source_, row_, out_, true).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Text(out_), "mine");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(DownloadTest, AFolderThatIsNotThere) {
  const absl::Status status = Download(source_, row_, out_ + "/none/file", false);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/file"));
}

}  // namespace
}  // namespace pelab::client
