#include "worker/agent/spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kAll = 1 << 30;

class SpoolTest : public testing::Test {
 protected:
  std::unique_ptr<Spool> Open() {
    auto spool = Spool::Open(path_, &quota_);
    EXPECT_THAT(spool, IsOk());
    return *std::move(spool);
  }
  static v1::Event Epoch(int epoch, std::size_t padding = 0) {
    v1::Event event;
    event.set_attempt_id(1);
    event.mutable_epoch()->set_epoch(epoch);
    if (padding > 0) event.mutable_analysis()->set_result_json(std::string(padding, 'x'));
    return event;
  }
  static v1::Event Finished(v1::AttemptOutcome outcome) {
    v1::Event event;
    event.mutable_finished()->set_outcome(outcome);
    return event;
  }
  static std::vector<std::uint64_t> Sequences(const Spool& spool, std::uint64_t after,
                                              std::size_t bytes = kAll) {
    v1::EventBatch batch;
    EXPECT_THAT(spool.Read(after, bytes, &batch), IsOk());
    std::vector<std::uint64_t> sequences;
    for (const v1::Event& event : batch.events()) sequences.push_back(event.sequence());
    return sequences;
  }

  TempDir dir_;
  const std::string path_ = dir_ / "spool";
  SpoolQuota quota_{1 << 20};
};

TEST_F(SpoolTest, NumbersFromOneAndReadsBack) {
  auto spool = Open();
  EXPECT_EQ(spool->last(), 0u);
  for (int epoch = 0; epoch < 3; ++epoch) ASSERT_THAT(spool->Append(Epoch(epoch)), IsOk());
  EXPECT_EQ(spool->last(), 3u);
  EXPECT_THAT(Sequences(*spool, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(Sequences(*spool, 2), ElementsAre(3));
  EXPECT_THAT(Sequences(*spool, 3), IsEmpty());
  v1::EventBatch batch;
  EXPECT_EQ(*spool->Read(1, kAll, &batch), 3u);
  EXPECT_EQ(batch.events(0).epoch().epoch(), 1);
}

TEST_F(SpoolTest, ReadIsBoundedButNeverEmptyHanded) {
  auto spool = Open();
  for (int epoch = 0; epoch < 10; ++epoch) ASSERT_THAT(spool->Append(Epoch(epoch, 1000)), IsOk());
  EXPECT_THAT(Sequences(*spool, 0, 1), ElementsAre(1));
  EXPECT_THAT(Sequences(*spool, 0, 2500), ElementsAre(1, 2, 3));
}

TEST_F(SpoolTest, AnEventThatCannotBeReadBackIsNotHalfRead) {
  auto spool = Open();
  ASSERT_THAT(spool->Append(Epoch(0)), IsOk());
  v1::Event bad = Finished(v1::ATTEMPT_OUTCOME_FAILED);
  bad.mutable_finished()->set_error("not UTF-8: \xff");
  ASSERT_THAT(spool->Append(bad), IsOk());
  v1::EventBatch batch;
  EXPECT_THAT(spool->Read(0, kAll, &batch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("event 2 cannot be read back")));
  ASSERT_EQ(batch.events_size(), 1);
  EXPECT_EQ(batch.events(0).sequence(), 1u);
}

TEST_F(SpoolTest, SurvivesItsProcess) {
  {
    auto spool = Open();
    ASSERT_THAT(spool->Append(Epoch(0)), IsOk());
    ASSERT_THAT(spool->Append(Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)), IsOk());
  }
  auto spool = Open();
  EXPECT_EQ(spool->last(), 2u);
  EXPECT_EQ(spool->acknowledged(), 0u);
  ASSERT_TRUE(spool->finished().has_value());
  EXPECT_EQ(spool->finished()->outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_THAT(spool->Append(Epoch(1)), StatusIs(absl::StatusCode::kFailedPrecondition, testing::_));
}

// At whatever byte a power loss or a kill cuts the file, the complete frames before it stay, and
// appending continues.
TEST_F(SpoolTest, ATornTailIsCutOffAtAnyByte) {
  std::vector<std::uint64_t> ends = {0};
  {
    auto spool = Open();
    for (int epoch = 0; epoch < 3; ++epoch) {
      ASSERT_THAT(spool->Append(Epoch(epoch)), IsOk());
      ends.push_back(spool->file_bytes());
    }
  }
  const std::string whole = *ReadFile(path_, 1 << 20);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    std::uint64_t kept = 0;
    while (kept + 1 < ends.size() && ends[kept + 1] <= cut) ++kept;
    auto spool = Open();
    EXPECT_EQ(spool->last(), kept) << "cut at " << cut;
    ASSERT_THAT(spool->Append(Epoch(9)), IsOk());
    spool.reset();
    EXPECT_EQ(Open()->last(), kept + 1) << "cut at " << cut;
  }
}

TEST_F(SpoolTest, ADamagedEventHidesWhatFollowsButNothingBefore) {
  std::uint64_t second = 0;
  {
    auto spool = Open();
    ASSERT_THAT(spool->Append(Epoch(0)), IsOk());
    second = spool->file_bytes();
    ASSERT_THAT(spool->Append(Epoch(1)), IsOk());
    ASSERT_THAT(spool->Append(Epoch(2)), IsOk());
  }
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(second) + 10);
  file.put('\x7F');
  file.close();
  EXPECT_EQ(Open()->last(), 1u);
}

TEST_F(SpoolTest, TheQuotaCountsWhatIsNotAcknowledged) {
  auto spool = Open();
  for (int epoch = 0; epoch < 4; ++epoch)
    ASSERT_THAT(spool->Append(Epoch(epoch, 300 << 10)), IsOk());
  EXPECT_TRUE(quota_.full());
  // Even then the outcome of an attempt is recorded.
  ASSERT_THAT(spool->Append(Finished(v1::ATTEMPT_OUTCOME_FAILED)), IsOk());
  spool->Acknowledge(1);
  EXPECT_FALSE(quota_.full());
  spool->Acknowledge(5);
  EXPECT_EQ(quota_.used(), 0u);
  spool.reset();
  EXPECT_EQ(quota_.used(), 0u);
  spool = Open();  // only a rewritten file remembers the acknowledgement
  EXPECT_EQ(spool->last(), 5u);
}

TEST_F(SpoolTest, AcknowledgedEventsAreCutOffTheFront) {
  auto spool = Open();
  for (int epoch = 0; epoch < 20; ++epoch)
    ASSERT_THAT(spool->Append(Epoch(epoch, 100 << 10)), IsOk());
  const std::uint64_t before = spool->file_bytes();
  spool->Acknowledge(19);
  EXPECT_LT(spool->file_bytes(), before / 10);
  EXPECT_EQ(spool->file_bytes(), std::filesystem::file_size(path_));
  EXPECT_THAT(Sequences(*spool, 0), ElementsAre(20));
  ASSERT_THAT(spool->Append(Epoch(20)), IsOk());
  spool.reset();
  spool = Open();
  EXPECT_EQ(spool->acknowledged(), 19u);
  EXPECT_THAT(Sequences(*spool, 19), ElementsAre(20, 21));
  spool->Acknowledge(99);  // more than there is
  EXPECT_EQ(spool->acknowledged(), 21u);
}

TEST_F(SpoolTest, GoesOnAfterWhatTheCoordinatorHasAndThisDiskHasLost) {
  auto spool = Open();
  ASSERT_THAT(spool->Append(Epoch(0)), IsOk());
  ASSERT_THAT(spool->ContinueAfter(7), IsOk());
  ASSERT_THAT(spool->Append(Finished(v1::ATTEMPT_OUTCOME_PREEMPTED)), IsOk());
  EXPECT_THAT(Sequences(*spool, 7), ElementsAre(8));
  ASSERT_THAT(spool->ContinueAfter(3), IsOk());  // no effect
  EXPECT_EQ(spool->last(), 8u);
  spool.reset();
  spool = Open();
  EXPECT_EQ(spool->last(), 8u);
  EXPECT_TRUE(spool->finished().has_value());
}

// A file whose numbers went back, or wrapped to 0, would give two events one number.
TEST_F(SpoolTest, NumbersNeitherGoBackNorWrap) {
  const auto base_frame = [&](std::uint64_t sequence) {
    const std::string other = dir_ / "other";
    std::filesystem::remove(other);
    EXPECT_THAT((*Spool::Open(other, &quota_))->ContinueAfter(sequence), IsOk());
    return *ReadFile(other, 1 << 20);
  };
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  EXPECT_THAT(Open()->ContinueAfter(kMost + 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it has event 46116860")));
  EXPECT_EQ(Open()->file_bytes(), 0U);

  ASSERT_THAT(Open()->Append(Epoch(0)), IsOk());
  ASSERT_THAT(Open()->Append(Epoch(1)), IsOk());
  const std::string whole = *ReadFile(path_, 1 << 20);
  std::ofstream(path_, std::ios::binary | std::ios::app) << base_frame(1);
  EXPECT_EQ(Open()->file_bytes(), whole.size()) << "cut off: event 2 is in the file";
  EXPECT_EQ(Open()->last(), 2U);
  std::ofstream(path_, std::ios::binary | std::ios::app) << base_frame(kMost);
  EXPECT_EQ(Open()->last(), kMost);
  EXPECT_EQ(Open()->acknowledged(), kMost);
}

}  // namespace
}  // namespace pelab::agent
