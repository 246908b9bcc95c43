// A job's newest checkpoint: which attempt may store one, which attempt gets it, when it is
// deleted; and which files are needed.
#include "core/db/check/check.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::Outcome;
using testing::ElementsAre;
using testing::IsEmpty;

std::string Hash(char digit) { return std::string(64, digit); }

class CheckpointsTest : public StoreTest {
 protected:
  CheckpointsTest() {
    dropped_callback_ = [this](std::vector<std::string> files) {
      dropped_.insert(dropped_.end(), files.begin(), files.end());
    };
    Open();
    Submit("a", {Cell(0, "k0")});
  }
  v1::Event At(int epoch) {
    return CheckpointEvent(epoch, Hash(static_cast<char>('0' + epoch)), 100);
  }
  std::string Rows() { return Text("SELECT job_id, epoch, substr(sha256, 1, 2) FROM checkpoints"); }
  std::vector<std::string> Unneeded(const std::vector<std::string>& files) {
    return Do<Unused>(FindUnused{files}).sha256s;
  }
  // Every check of `pelab db check`, except those of the files, which do not exist here.
  void ExpectSound() {
    if (!GetParam()) return;
    const auto checks = db::CheckDatabase(path_);
    ASSERT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) {
      if (check.name == "artifacts are there at their size") continue;
      EXPECT_THAT(check.problems, IsEmpty()) << check.name;
    }
  }

  std::vector<std::string> dropped_;
};
INSTANTIATE_TEST_SUITE_P(Backends, CheckpointsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(CheckpointsTest, TheNewestIsKeptAndGivenToTheNextAttempt) {
  Attempt attempt = Assign(1, 1);
  EXPECT_FALSE(assignment_.checkpoint.has_value());
  Train(attempt, 0, 1);
  EXPECT_EQ(Event(attempt.Next(At(1))).status, EventStored::kStored);
  Event(attempt.Next(MakeEpoch(1)));
  Event(attempt.Next(At(2)));
  EXPECT_EQ(Rows(), "1 2 22");
  EXPECT_THAT(dropped_, ElementsAre(Hash('1')));
  EXPECT_EQ(Text("SELECT job_id, epoch, bytes, attempt, worker FROM v_checkpoints"), "1 2 100 1 w");
  ExpectSound();
  Event(attempt.Next(EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED)));
  Assign(1, 2);
  ASSERT_TRUE(assignment_.checkpoint.has_value());
  EXPECT_EQ(assignment_.checkpoint->epoch, 2);
  EXPECT_EQ(assignment_.checkpoint->sha256, Hash('2'));
  EXPECT_EQ(assignment_.checkpoint->bytes, 100u);
  EXPECT_EQ(assignment_.max_start_epoch, 2);
  // The same after a restart.
  if (!GetParam()) return;
  Open();
  std::vector<OpenAttempt> open;
  ASSERT_TRUE(store_
                  ->Recover([](auto) {}, [](auto) {},
                            [&](auto attempt) { open.push_back(attempt); }, [](auto) {})
                  .ok());
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].assignment.checkpoint->epoch, 2);
}

TEST_P(CheckpointsTest, OneAheadOfTheStoredCurveEndsItsAttempt) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 1);
  EXPECT_EQ(Event(attempt.Next(At(2))).status, EventStored::kSuperseded);
  EXPECT_EQ(Rows(), "");
  EXPECT_EQ(Text("SELECT outcome, error_kind FROM attempts"), "failed internal");
  Attempt early = Assign(1, 2);
  EXPECT_EQ(Event(early.Next(At(0))).status, EventStored::kSuperseded) << "before its hello";
}

TEST_P(CheckpointsTest, AnAttemptThatBeganEarlierDropsIt) {
  Attempt first = Assign(1, 1);
  Train(first, 0, 2);
  Event(first.Next(At(2)));
  Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "", 3000});
  Attempt second = Assign(1, 2);
  Event(second.Next(StartedEvent(1, 3)));
  EXPECT_EQ(Rows(), "") << "the curve has one epoch now";
  EXPECT_THAT(dropped_, ElementsAre(Hash('2')));
  Event(second.Next(At(1)));  // from the checkpoint on its own disk
  EXPECT_EQ(Rows(), "1 1 11");
  Do<EventStored>(EndAttempt{second.id, state::Event::kLose, "", 3000});
  Attempt third = Assign(1, 3);
  Event(third.Next(StartedEvent(1, 3)));
  EXPECT_EQ(Rows(), "1 1 11") << "it goes on from there";
  ExpectSound();
}

TEST_P(CheckpointsTest, ALateOneOfASupersededAttemptIsRefused) {
  Attempt first = Assign(1, 1);
  Train(first, 0, 2);
  Do<EventStored>(EndAttempt{first.id, state::Event::kLose, "", 3000});
  Attempt second = Assign(1, 2);
  EXPECT_EQ(Event(first.Next(At(2))).status, EventStored::kSuperseded);
  EXPECT_FALSE(Do<UploadRecorded>(RecordUpload{first.id, 1, Hash('2')}).accepted);
  EXPECT_FALSE(Do<UploadRecorded>(RecordUpload{second.id, 1, Hash('2')}).accepted);
  EXPECT_FALSE(Do<UploadRecorded>(RecordUpload{4711, 1, Hash('2')}).accepted);
  EXPECT_EQ(Rows(), "");
  EXPECT_THAT(Unneeded({Hash('2')}), ElementsAre(Hash('2')));
}

TEST_P(CheckpointsTest, ItGoesWhenItsJobSucceeds) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 3);
  Event(attempt.Next(At(3)));
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(SucceededEvent()));
  EXPECT_EQ(JobState(1), "succeeded");
  EXPECT_EQ(Rows(), "");
  EXPECT_THAT(dropped_, ElementsAre(Hash('3')));
}

TEST_P(CheckpointsTest, ItGoesWhenItsJobFailsForGoodAndStaysWhereItIsTriedAgain) {
  Attempt first = Assign(1, 1);
  Train(first, 0, 1);
  Event(first.Next(At(1)));
  Event(first.Next(FailedEvent(state::ErrorKind::kTrainerDied, "died")));
  EXPECT_EQ(Rows(), "1 1 11");
  Attempt second = Assign(1, 2);
  Train(second, 1, 2);
  Event(second.Next(FailedEvent(state::ErrorKind::kOutOfMemory, "no room")));
  EXPECT_EQ(JobState(1), "failed");
  EXPECT_EQ(Rows(), "");
  ExpectSound();
}

TEST_P(CheckpointsTest, ItGoesWhenItsJobIsCancelledAndNoneComesAfter) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 2);
  Event(attempt.Next(At(1)));
  Do<Cancelled>(CancelJob{1, 1});
  EXPECT_EQ(Rows(), "");
  // Its worker has not heard of it yet.
  EXPECT_EQ(Event(attempt.Next(At(2))).status, EventStored::kStored);
  EXPECT_EQ(Rows(), "");
  EXPECT_THAT(dropped_, ElementsAre(Hash('1'), Hash('2')));
  ExpectSound();
}

TEST_P(CheckpointsTest, OneWhoseFileHasGoneIsNotRecorded) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 2);
  Event(attempt.Next(At(1)));
  gone_artifact_ = Hash('2');
  EXPECT_EQ(Event(attempt.Next(At(2))).status, EventStored::kStored);
  EXPECT_EQ(Rows(), "1 1 11");
}

TEST_P(CheckpointsTest, OneOfAnotherSizeThanItsFileIsNotRecorded) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 2);
  EXPECT_EQ(Event(attempt.Next(CheckpointEvent(2, Hash('2'), kOtherBytes + 1))).status,
            EventStored::kStored);
  EXPECT_EQ(Rows(), "");
}

TEST_P(CheckpointsTest, WeightsThatAreNotStoredEndTheAttempt) {
  gone_artifact_ = Hash('3');
  const std::vector<std::pair<v1::Event, std::string>> bad = {
      {ArtifactEvent(kWeightsName, gone_artifact_, kOtherBytes),
       "file weights.safetensors: no file with SHA-256 3333"},
      {ArtifactEvent(kWeightsName, kWeightsHash, kWeightsBytes + 1),
       "file weights.safetensors: \"bytes\" is 13; the stored file has 12"},
      {ArtifactEvent(kWeightsName, kWeightsHash, std::uint64_t{1} << 63),
       "\"bytes\" is 9223372036854775808; allowed: an integer from 0 to 9223372036854775807"},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("t", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id, 1);
    Train(attempt, 0, 3);
    const EventStored refused = Event(attempt.Next(bad[i].first));
    ASSERT_TRUE(refused.change);
    EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
    EXPECT_THAT(Text("SELECT error FROM attempts ORDER BY attempt_id DESC LIMIT 1"),
                testing::HasSubstr(bad[i].second));
  }
  EXPECT_EQ(Text("SELECT count(*) FROM artifacts"), "0");
}

TEST_P(CheckpointsTest, AFileIsNeededFromItsUploadToItsLastRow) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 3);
  const std::vector<std::string> files = {Hash('1'), Hash('2'), Hash('a'), Hash('f')};
  EXPECT_EQ(Unneeded(files), files);
  for (const char digit : {'1', '2', 'a'}) {
    EXPECT_TRUE(Do<UploadRecorded>(RecordUpload{attempt.id, 1, Hash(digit)}).accepted);
  }
  EXPECT_THAT(Unneeded(files), ElementsAre(Hash('f')));
  Event(attempt.Next(At(1)));
  EXPECT_EQ(Text("SELECT count(*) FROM uploads"), "2");
  EXPECT_THAT(Unneeded(files), ElementsAre(Hash('f')));
  Event(attempt.Next(At(2)));
  EXPECT_THAT(Unneeded(files), ElementsAre(Hash('1'), Hash('f')));
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(ArtifactEvent(kWeightsName, Hash('a'), 12)));
  Event(attempt.Next(SucceededEvent()));
  EXPECT_THAT(Unneeded(files), ElementsAre(Hash('1'), Hash('2'), Hash('f')));
}

TEST_P(CheckpointsTest, AnAttemptHasOnlySoManyFilesThatNoEventNames) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 1);
  const auto record = [&](char digit, bool only_ask = false) {
    return Do<UploadRecorded>(RecordUpload{attempt.id, 1, Hash(digit), 2, only_ask});
  };
  EXPECT_TRUE(record('1', /*only_ask=*/true).accepted);
  EXPECT_EQ(Text("SELECT count(*) FROM uploads"), "0");
  EXPECT_TRUE(record('1').accepted);
  EXPECT_TRUE(record('2').accepted);
  EXPECT_TRUE(record('2').accepted) << "it is one of the two";
  EXPECT_TRUE(record('3').full);
  EXPECT_FALSE(record('3').accepted);
  EXPECT_TRUE(record('3', /*only_ask=*/true).full);
  Event(attempt.Next(At(1)));  // names the first
  EXPECT_TRUE(record('3').accepted);
  ExpectSound();
}

TEST_P(CheckpointsTest, AnUploadThatNoEventNamedIsNotNeededOnceItsAttemptHasEnded) {
  Attempt attempt = Assign(1, 1);
  Train(attempt, 0, 1);
  Do<UploadRecorded>(RecordUpload{attempt.id, 1, Hash('1')});
  EXPECT_THAT(Unneeded({Hash('1')}), IsEmpty());
  Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "", 3000});
  EXPECT_THAT(Unneeded({Hash('1')}), ElementsAre(Hash('1')));
  EXPECT_EQ(Text("SELECT count(*) FROM uploads"), "0");
}

TEST_P(CheckpointsTest, TheOldestAreGivenUpFirst) {
  Submit("b", {Cell(0, "k1"), Cell(1, "k2")});
  for (int job = 1; job <= 3; ++job) {
    AddWorker();
    Attempt attempt = Assign(job, 10 + job);
    Train(attempt, 0, 1);
    AttemptEvent event = attempt.Next(CheckpointEvent(1, Hash(static_cast<char>('0' + job)), 100));
    event.now = 9000 - job;
    Event(event);
  }
  EXPECT_THAT(Do<Unused>(DropCheckpoints{101}).sha256s, ElementsAre(Hash('3'), Hash('2')));
  EXPECT_EQ(Rows(), "1 1 11");
  EXPECT_THAT(Do<Unused>(DropCheckpoints{1000}).sha256s, ElementsAre(Hash('1')));
  EXPECT_THAT(Do<Unused>(DropCheckpoints{1000}).sha256s, IsEmpty());
}

}  // namespace
}  // namespace pelab::store
