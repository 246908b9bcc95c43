// Staged epochs: new epochs wait before they are moved into their curves. Wherever an epoch is
// stored, the views and summaries must show the same as a plain list.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "core/db/check/check.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

class EpochStagingTest : public StoreTest {
 protected:
  void OpenWith(const EpochStagingOptions& staging) {
    staging_ = staging;
    Open();
  }
  // Counts the epochs by place: in their curves, waiting, waiting to be deleted.
  std::string Places() {
    return Text(
        "SELECT (SELECT count(*) FROM curves), (SELECT count(*) FROM accepted_epochs "
        "WHERE waits = 1), (SELECT count(*) FROM staged_epochs)");
  }
  void Store(Attempt& attempt, int from, int to) {
    for (int i = from; i < to; ++i) {
      ASSERT_EQ(Event(attempt.Next(MakeEpoch(i))).status, EventStored::kStored);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Memory, EpochStagingTest, testing::Values(false));

TEST_P(EpochStagingTest, EpochsWaitUntilThereAreEnoughAndThenMoveByAttempt) {
  OpenWith({.rows = 4, .transactions = 1000, .least_moved = 1});
  Submit("a", {Cell(0, "k0", 20), Cell(1, "k1", 20)});
  Attempt first = Assign(1);
  Attempt second = Assign(2);
  Event(first.Next(StartedEvent(0, 20)));
  Event(second.Next(StartedEvent(0, 20)));
  Store(second, 0, 2);
  Store(first, 0, 2);
  EXPECT_EQ(Places(), "0 4 4");
  Store(second, 2, 3);  // begins the move: the two epochs of the first attempt
  EXPECT_EQ(Places(), "2 3 5");
  EXPECT_EQ(Text("SELECT until_id, through_attempt FROM epoch_move"), "4 1");
  EXPECT_EQ(Text("SELECT job_id, epoch FROM v_curves ORDER BY 1, 2"), "1 0 1 1 2 0 2 1 2 2");
  Store(first, 2, 3);  // moves the two epochs of the second attempt
  EXPECT_EQ(Places(), "4 2 6");
  Store(first, 3, 4);  // and deletes the moved rows
  EXPECT_EQ(Places(), "4 3 3");
  EXPECT_EQ(Text("SELECT until_id, through_attempt FROM epoch_move"), "0 0");
}

TEST_P(EpochStagingTest, FewEpochsMoveAfterSomeTransactionsToo) {
  OpenWith({.rows = 1000, .transactions = 3});
  Submit("a", {Cell(0, "k0", 20)});
  Attempt attempt = Assign(1);
  Event(attempt.Next(StartedEvent(0, 20)));
  Store(attempt, 0, 3);
  EXPECT_EQ(Places(), "0 3 3");
  Store(attempt, 3, 4);  // the third transaction with waiting epochs
  EXPECT_EQ(Places(), "3 1 1");
}

TEST_P(EpochStagingTest, WhileNothingElseIsDoneAllMove) {
  OpenWith({.moved_when_idle = 3});
  EXPECT_FALSE(store_->MoveEpochs());
  Submit("a", {Cell(0, "k0", 20), Cell(1, "k1", 20)});
  for (const int job : {1, 2}) {
    Attempt attempt = Assign(job);
    Event(attempt.Next(StartedEvent(0, 20)));
    Store(attempt, 0, 5);
  }
  EXPECT_TRUE(store_->MoveEpochs());
  EXPECT_EQ(Places(), "5 5 10");
  while (store_->MoveEpochs()) {
  }
  EXPECT_EQ(Places(), "10 0 0");
  EXPECT_FALSE(store_->MoveEpochs());
}

// A reused row id would make a later epoch look as if it had been moved already.
TEST_P(EpochStagingTest, AnEpochThatComesWhileOthersMoveIsNotTakenForOneOfThem) {
  constexpr int kJobs = 6;
  OpenWith({.rows = 2 * kJobs - 1, .transactions = 1000, .least_moved = 1});
  std::vector<NewCell> cells;
  for (int i = 0; i < kJobs; ++i) cells.push_back(Cell(i, absl::StrCat("k", i), 9));
  Submit("a", cells);
  std::vector<Attempt> attempts;
  for (int job = 1; job <= kJobs; ++job) {
    attempts.push_back(Assign(job));
    Event(attempts.back().Next(StartedEvent(0, 9)));
  }
  for (int i = 0; i < kJobs; ++i) Store(attempts[i], 0, i + 1 < kJobs ? 2 : 1);
  ASSERT_EQ(Places(), "0 11 11");
  // Each of these transactions moves one attempt. The last one moves the attempt with the highest
  // id out of turn.
  Do<EventStored>(EndAttempt{attempts.back().id, state::Event::kLose, "its lease ran out", 3000});
  Attempt again = Assign(kJobs, 78);
  Event(again.Next(StartedEvent(1, 9)));
  ASSERT_EQ(Text("SELECT until_id, through_attempt, (SELECT max(staged_id) FROM staged_epochs) "
                 "FROM epoch_move"),
            "11 4 10");
  Store(attempts[0], 2, 3);
  EXPECT_EQ(Text("SELECT count(*) FROM v_curves WHERE job_id = 1"), "3");
}

// Many attempts that are lost, resumed and ended in any order, with moves at any moment,
// transactions without effect, and restarts.
TEST_P(EpochStagingTest, AnyHistoryReadsAsAPlainList) {
  constexpr int kJobs = 6;
  constexpr int kEpochs = 1000;
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    path_ = directory_ + "/pelab.db";
    OpenWith(
        {.rows = 5 + seed, .transactions = 7, .least_moved = 1 + seed % 4, .moved_when_idle = 3});
    std::mt19937 random(seed);
    const auto draw = [&random](int below) { return static_cast<int>(random() % below); };
    std::vector<NewCell> cells;
    for (int i = 0; i < kJobs; ++i) cells.push_back(Cell(i, absl::StrCat("k", i), kEpochs));
    Submit(absl::StrCat("s", seed), cells);
    std::vector<std::optional<Attempt>> attempts(kJobs + 1);
    std::map<int, std::vector<int>> line;  // job -> test_correct by epoch
    for (int step = 0; step < 250; ++step) {
      const int job = 1 + draw(kJobs);
      auto& attempt = attempts[job];
      std::vector<int>& epochs = line[job];
      const auto add = [&](std::vector<Write>& writes) {
        v1::Epoch epoch = MakeEpoch(static_cast<int>(epochs.size()));
        epoch.set_test_correct(draw(98));
        writes.emplace_back(attempt->Next(epoch));
        epochs.push_back(static_cast<int>(epoch.test_correct()));
      };
      if (!attempt) {
        attempt = Assign(job, 100 + step);
        const int start = epochs.empty() ? 0 : draw(static_cast<int>(epochs.size()) + 1);
        ASSERT_EQ(Event(attempt->Next(StartedEvent(start, kEpochs))).status, EventStored::kStored);
        epochs.resize(start);
      } else if (const int what = draw(20); what == 0) {
        Do<EventStored>(EndAttempt{attempt->id, state::Event::kPreempt, "", 3000});
        attempt.reset();
      } else if (what == 1) {
        Open();
      } else if (what == 2) {
        store_->MoveEpochs();
      } else if (what == 3) {  // the schema refuses one of them, so they are stored one by one
        std::vector<Write> writes;
        add(writes);
        writes.emplace_back(CreateAttempt{.job_id = job, .worker_id = "nobody", .token = 1});
        add(writes);
        ASSERT_TRUE(store_->Apply(writes).ok());
      } else {
        std::vector<Write> writes;
        for (int i = draw(6); i >= 0; --i) add(writes);
        ASSERT_TRUE(store_->Apply(writes).ok());
      }
      std::string wanted;
      for (const auto& [id, values] : line) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          absl::StrAppend(&wanted, wanted.empty() ? "" : " ", id, " ", i, " ", values[i]);
        }
      }
      ASSERT_EQ(Text("SELECT job_id, epoch, test_correct FROM v_curves ORDER BY 1, 2"), wanted)
          << "step " << step;
    }
    for (const db::Check& check : db::CheckConnection(store_->database().connection())) {
      EXPECT_THAT(check.problems, testing::IsEmpty()) << check.name;
    }
  }
}

}  // namespace
}  // namespace pelab::store
