// Curves are read without v_curves. For any attempts of a job the rows must equal the view's.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/db/read/reader.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

// A double as text, bit for bit.
std::string Bits(double value) { return std::to_string(std::bit_cast<std::uint64_t>(value)) + " "; }

std::string TextOf(const v1::CurveRow& row) {
  return std::to_string(row.job_id()) + " " + std::to_string(row.epoch()) + " " +
         Bits(row.train_loss()) + Bits(row.train_accuracy()) + Bits(row.test_loss()) +
         Bits(row.test_accuracy()) + Bits(row.learning_rate()) + Bits(row.seconds()) +
         std::to_string(row.train_correct()) + " " + std::to_string(row.train_total()) + " " +
         std::to_string(row.test_correct()) + " " + std::to_string(row.test_total()) +
         (row.has_train_eval_total()
              ? " " + Bits(row.train_eval_accuracy()) + std::to_string(row.train_eval_correct()) +
                    " " + std::to_string(row.train_eval_total())
              : "");
}

std::string TextOf(SQLite::Statement& row) {
  std::string text =
      row.getColumn("job_id").getString() + " " + row.getColumn("epoch").getString() + " ";
  for (const char* name :
       {"train_loss", "train_accuracy", "test_loss", "test_accuracy", "learning_rate", "seconds"}) {
    text += Bits(row.getColumn(name).getDouble());
  }
  text += row.getColumn("train_correct").getString() + " " +
          row.getColumn("train_total").getString() + " ";
  text += row.getColumn("test_correct").getString() + " " + row.getColumn("test_total").getString();
  if (row.getColumn("train_eval_total").isNull()) return text;
  return text + " " + Bits(row.getColumn("train_eval_accuracy").getDouble()) +
         row.getColumn("train_eval_correct").getString() + " " +
         row.getColumn("train_eval_total").getString();
}

class CurveRowsTest : public ::testing::TestWithParam<int> {
 protected:
  int Draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  // Adds an epoch to the curve, or to the epochs that wait to be moved there.
  void AddEpoch(std::int64_t attempt, int epoch, bool waits = false) {
    SQLite::Statement insert(
        file_.db(), std::string("INSERT INTO ") + (waits ? "staged_epochs" : "curves") +
                        " (attempt_id, epoch, train_loss, train_correct, train_total, test_loss, "
                        "test_correct, test_total, learning_rate, seconds, train_eval_correct, "
                        "train_eval_total) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    const auto real = [this] {
      if (Draw(20) == 0) return std::numeric_limits<double>::infinity();
      return std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random_), Draw(80) - 40);
    };
    insert.bind(1, attempt);
    insert.bind(2, epoch);
    insert.bind(3, real());
    insert.bind(4, Draw(1000));
    insert.bind(5, Draw(20) == 0 ? 0 : 1 + Draw(1000));
    insert.bind(6, real());
    insert.bind(7, std::int64_t{Draw(1000)} << Draw(45));
    insert.bind(8, Draw(20) == 0 ? 0 : 1 + Draw(1000));
    insert.bind(9, real());
    insert.bind(10, real());
    if (Draw(3) > 0) {  // otherwise NULL: not measured
      insert.bind(11, Draw(1000));
      insert.bind(12, 1 + Draw(1000));
    }
    insert.exec();
  }

  // Adds attempts that started from scratch, resumed, never said hello, or stored nothing.
  void AddCurve(std::int64_t job) {
    const int attempts = Draw(2) == 0 ? 1 : Draw(5);
    int reached = 0;
    for (int number = 1; number <= attempts; ++number) {
      const int start = Draw(4) == 0 ? 0 : Draw(reached + 1);
      const auto attempt =
          file_.AddAttempt(job, number, start, number == attempts ? "succeeded" : "lost");
      if (Draw(6) == 0) {
        file_.Execute("UPDATE attempts SET start_epoch = NULL WHERE attempt_id = " +
                      std::to_string(attempt));
        continue;
      }
      reached = start + Draw(9);
      const int first_waiting = Draw(2) == 0 ? reached : start + Draw(reached - start + 1);
      for (int epoch = start; epoch < reached; ++epoch) {
        if (epoch < first_waiting) {
          AddEpoch(attempt, epoch);
        } else {
          waiting_.emplace_back(epoch, attempt);
        }
      }
    }
  }

  // Adds waiting epochs of several attempts in alternation; a move of some of them to their curves
  // is in progress.
  void AddWaiting() {
    std::sort(waiting_.begin(), waiting_.end());
    for (const auto& [epoch, attempt] : waiting_) AddEpoch(attempt, epoch, /*waits=*/true);
    if (Draw(3) == 0) return;
    file_.Execute("UPDATE epoch_move SET until_id = " +
                  std::to_string(Draw(static_cast<int>(waiting_.size()))) +
                  ", through_attempt = " + std::to_string(1 + Draw(120)));
    file_.Execute(
        "INSERT INTO curves SELECT attempt_id, epoch, train_loss, train_correct, train_total, "
        "test_loss, test_correct, test_total, learning_rate, seconds, train_eval_correct, "
        "train_eval_total FROM staged_epochs, epoch_move WHERE staged_id <= until_id AND "
        "attempt_id <= through_attempt");
  }

  // Fills the database. Some keys have two generations; the sweeps claim the first ones.
  void Fill() {
    file_.Execute("BEGIN");  // one commit, because each commit waits for the disk
    for (int s = 0; s < 3; ++s) file_.AddSweep("sweep" + std::to_string(s));
    file_.Execute("UPDATE sweeps SET cells = 40 WHERE sweep_id = 1");
    for (int j = 0; j < 60; ++j) {
      const std::string key = "abc" + std::to_string(100 + j * 37 % 60);
      const auto job = file_.AddJob({.key = key, .state = Draw(3) == 0 ? "failed" : "succeeded"});
      AddCurve(job);
      if (Draw(3) != 0) file_.AddToSweep(1, 1000 - j, job);
      if (Draw(12) == 0) file_.AddToSweep(2, j, job);
      if (j >= 50) file_.AddToSweep(3, j, job);
      if (Draw(5) == 0) AddCurve(file_.AddJob({.key = key, .generation = 2}));
    }
    AddWaiting();
    file_.Execute("COMMIT");
  }

  std::vector<std::string> FromView(const std::string& sweep) {
    std::vector<std::string> rows;
    SQLite::Statement query(
        file_.db(),
        "SELECT c.* FROM v_curves AS c JOIN v_jobs AS j USING (job_id) WHERE ?1 = '' OR "
        "j.key IN (SELECT mine.key FROM sweep_jobs JOIN jobs AS mine USING (job_id) "
        "WHERE sweep_id = CAST(?1 AS INTEGER)) ORDER BY job_id, epoch");
    query.bind(1, sweep);
    while (query.executeStep()) rows.push_back(TextOf(query));
    return rows;
  }

  std::vector<std::string> InPages(Reader& reader, const std::string& sweep, int limit) {
    std::vector<std::string> rows;
    v1::ListCurvesRequest request;
    request.mutable_filter()->set_sweep(sweep);
    request.mutable_page()->set_limit(limit);
    for (int page = 0; page < 10'000; ++page) {
      const auto response = reader.ListCurves(request);
      EXPECT_TRUE(response.ok()) << response.status();
      if (!response.ok()) break;
      EXPECT_LE(response->rows_size(), limit);
      for (const auto& row : response->rows()) rows.push_back(TextOf(row));
      if (response->next().empty()) break;
      EXPECT_EQ(response->rows_size(), limit) << "only the last page is short";
      request.mutable_page()->set_after(response->next());
    }
    return rows;
  }

  void ExpectViewsRows(const std::vector<std::string>& sweeps) {
    const auto reader = Reader::Open(file_.path());
    ASSERT_TRUE(reader.ok()) << reader.status();
    for (const std::string& sweep : sweeps) {
      const std::vector<std::string> expected = FromView(sweep);
      for (const int limit : {1, 2, 5, 64, kMaxPage}) {
        const std::vector<std::string> rows = InPages(**reader, sweep, limit);
        const auto [is, should] =
            std::mismatch(rows.begin(), rows.end(), expected.begin(), expected.end());
        EXPECT_TRUE(is == rows.end() && should == expected.end())
            << "sweep \"" << sweep << "\", pages of " << limit << ": row " << is - rows.begin()
            << " is " << (is == rows.end() ? "none" : *is) << ", in the view "
            << (should == expected.end() ? "none" : *should);
      }
    }
  }

  // The first epoch at which each job reached `accuracy`, by the view.
  std::map<std::int64_t, std::int64_t> EpochsTo(double accuracy) {
    std::map<std::int64_t, std::int64_t> epochs;
    SQLite::Statement query(file_.db(),
                            "SELECT job_id, min(epoch) FROM v_curves JOIN v_jobs USING "
                            "(job_id) WHERE v_curves.test_accuracy >= ? GROUP BY job_id");
    query.bind(1, accuracy);
    while (query.executeStep()) {
      epochs[query.getColumn(0).getInt64()] = query.getColumn(1).getInt64();
    }
    return epochs;
  }

  // Stores the best epochs, as the coordinator does with every epoch.
  void FillBest() {
    file_.Execute(
        "UPDATE jobs SET (best_test_correct, best_test_total) = (SELECT test_correct, test_total "
        "FROM v_curves WHERE v_curves.job_id = jobs.job_id AND test_total > 0 "
        "ORDER BY v_curves.test_accuracy DESC LIMIT 1)");
  }

  std::vector<std::int64_t> Where(Reader& reader, const std::string& condition) {
    v1::ListJobsRequest request;
    request.mutable_filter()->set_where(condition);
    const auto response = reader.ListJobs(request);
    EXPECT_TRUE(response.ok()) << response.status();
    std::vector<std::int64_t> jobs;
    if (response.ok()) {
      for (const auto& job : response->jobs()) jobs.push_back(job.job_id());
    }
    return jobs;
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};  // NOLINT: the same cases every time
  DatabaseForTest file_;
  std::vector<std::pair<int, std::int64_t>> waiting_;  // epoch, attempt
};

TEST_P(CurveRowsTest, AreThoseOfTheView) {
  Fill();
  EXPECT_GT(FromView("").size(), 50u);
  ExpectViewsRows({"", "1", "2", "3"});
}

// No coordinator stores such a file. `db check` names the problem, and the file is still read whole
// and by epoch.
TEST_P(CurveRowsTest, AreByEpochWhateverTheFileHolds) {
  const auto job = file_.AddJob({.key = "a1"});
  const auto first = file_.AddAttempt(job, 1, 0, "lost");
  const auto second = file_.AddAttempt(job, 2, 6, "succeeded");
  for (const int epoch : {4, 5, 6}) AddEpoch(first, epoch);
  for (const int epoch : {0, 6, 8}) AddEpoch(second, epoch);
  for (const int epoch : {1, 7}) AddEpoch(second, epoch, /*waits=*/true);
  AddCurve(file_.AddJob({.key = "b1"}));
  EXPECT_GE(FromView("").size(), 6u);
  ExpectViewsRows({""});
}

TEST_P(CurveRowsTest, ConditionsOnEpochsToAreTrueOfTheLeast) {
  Fill();
  FillBest();
  const auto reader = Reader::Open(file_.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  const std::vector<std::int64_t> all = Where(**reader, "");
  ASSERT_GT(all.size(), 50u);
  std::size_t found = 0;
  for (const char* accuracy : {"0", "0.5", "1e3", "1e9", "1e15", "1e30"}) {
    const auto epochs = EpochsTo(std::stod(accuracy));
    for (const double least : {0.0, 1.0, 2.0, 3.5, 6.0, 1e6}) {
      for (const char* op : {"=", "!=", "<", "<=", ">", ">="}) {
        const auto holds = [&, name = std::string(op)](std::int64_t job) {
          const auto its = epochs.find(job);
          if (its == epochs.end()) return name == "!=";
          const auto after = static_cast<double>(its->second);
          if (name == "=") return after == least;
          if (name == "!=") return after != least;
          if (name == "<") return after < least;
          if (name == "<=") return after <= least;
          return name == ">" ? after > least : after >= least;
        };
        std::vector<std::int64_t> expected;
        std::copy_if(all.begin(), all.end(), std::back_inserter(expected), holds);
        const std::string condition =
            std::string("epochs_to(") + accuracy + ") " + op + " " + std::to_string(least);
        EXPECT_EQ(Where(**reader, condition), expected) << condition;
        found += expected.size() < all.size() ? expected.size() : 0;
      }
    }
  }
  EXPECT_GT(found, 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CurveRowsTest, ::testing::Range(0, 6));

}  // namespace
}  // namespace pelab::db
