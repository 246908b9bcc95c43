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
    return on_piece(damaged_ ? "GHTS" : "ghts");
  }
  void Break() { breaks_ = true; }
  void Damage() { damaged_ = true; }

  absl::Status ReadJobs(const v1::JobFilter&,
                        const std::function<absl::Status(v1::ListJobsResponse&)>&) override {
    return None();
  }
  absl::Status ReadCurves(const v1::JobFilter&,
                          const std::function<absl::Status(const CurvePage&)>&) override {
    return None();
  }
  absl::StatusOr<std::vector<v1::HeadAblationRow>> HeadAblations(const v1::JobFilter&) override {
    return None();
  }
  absl::StatusOr<std::vector<v1::EpochsToRow>> EpochsTo(const v1::JobFilter&, double) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::vector<v1::DepositRow>> Deposits(const v1::JobFilter&, bool) override {
    return None();
  }
  absl::StatusOr<std::vector<v1::AnalysisRow>> Analyses(const v1::JobFilter&,
                                                        const std::string&) override {
    return None();
  }
  absl::StatusOr<std::vector<v1::ArtifactRow>> Artifacts(const v1::JobFilter&) override {
    return None();
  }
  absl::StatusOr<std::vector<v1::AttemptRow>> Attempts(const v1::JobFilter&) override {
    return None();
  }
  absl::StatusOr<std::vector<v1::WorkerRow>> Workers() override { return None(); }
  absl::StatusOr<std::vector<v1::Sweep>> Sweeps() override { return None(); }
  absl::StatusOr<v1::Sweep> Sweep(const std::string&) override { return None(); }
  absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string&, int) override { return None(); }
  std::string Description() const override { return "one file"; }

 private:
  static absl::Status None() { return absl::UnimplementedError("only files"); }
  bool breaks_ = false;
  bool damaged_ = false;
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
