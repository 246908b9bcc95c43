// Pages of a sweep's jobs, against the rule of v_jobs in plain C++: a key's newest generation that
// is trained, or its newest if none is; a sweep has the keys that it claims. The jobs of a sweep
// are scattered over those of others, so pages begin before, among and behind its numbers.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/core/db/read/reader_fixture.h"

namespace pelab::db {
namespace {

class SweepPagesTest : public ReaderTest {
 protected:
  struct Stored {
    std::int64_t id = 0;
    std::string key;
    int generation = 0;
    bool trained = false;
  };

  int Draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  // Adds jobs of 30 keys in up to three generations; two sweeps claim some of them.
  void Fill() {
    file_.Execute("BEGIN");
    sweeps_ = {file_.AddSweep("a"), file_.AddSweep("b")};
    std::map<std::string, int> generations;
    for (int j = 0; j < 60; ++j) {
      Stored job{.key = "abc" + std::to_string(100 + Draw(30)), .trained = Draw(2) == 0};
      job.generation = ++generations[job.key];
      job.id = file_.AddJob({.key = job.key,
                             .generation = job.generation,
                             .state = job.trained ? "succeeded" : "failed"});
      for (const std::int64_t sweep : sweeps_) {
        // The second sweep has none of the first jobs.
        const bool may = sweep == sweeps_[0] || j >= 40;
        if (may && Draw(3) == 0) {
          file_.AddToSweep(sweep, j, job.id);
          keys_[sweep].insert(job.key);
        }
      }
      jobs_.push_back(job);
    }
    file_.Execute("COMMIT");
  }

  std::vector<std::int64_t> Expected(std::int64_t sweep) const {
    std::map<std::string, const Stored*> counts;
    for (const Stored& job : jobs_) {
      const Stored*& best = counts[job.key];
      if (best == nullptr ||
          std::tie(job.trained, job.generation) > std::tie(best->trained, best->generation)) {
        best = &job;
      }
    }
    std::set<std::int64_t> ids;
    for (const auto& [key, job] : counts) {
      if (keys_.at(sweep).contains(key)) ids.insert(job->id);
    }
    return {ids.begin(), ids.end()};
  }

  std::mt19937_64 random_{7};  // NOLINT: the same jobs every time
  std::vector<std::int64_t> sweeps_;
  std::map<std::int64_t, std::set<std::string>> keys_;
  std::vector<Stored> jobs_;
};

TEST_F(SweepPagesTest, HaveEveryJobThatCountsOnce) {
  Fill();
  for (const std::int64_t sweep : sweeps_) {
    v1::JobFilter filter;
    filter.set_sweep(std::to_string(sweep));
    const std::vector<std::int64_t> expected = Expected(sweep);
    ASSERT_GT(expected.size(), 5u);
    for (const int cells : {1, 4, 30, 1000}) {
      file_.Execute("UPDATE sweeps SET cells = " + std::to_string(cells));
      for (const int limit : {1, 3, 100}) {
        std::vector<std::int64_t> seen;
        std::string after;
        do {
          const v1::ListJobsResponse page = Jobs(filter, after, limit);
          for (const std::int64_t id : Ids(page)) seen.push_back(id);
          after = page.next();
        } while (!after.empty() && seen.size() <= jobs_.size());
        EXPECT_EQ(seen, expected) << "sweep " << sweep << ", " << cells << " cells, pages of "
                                  << limit;
      }
    }
  }
}

TEST_F(SweepPagesTest, NothingFollowsTheLastNumber) {
  Fill();
  v1::JobFilter filter;
  filter.set_sweep("a");
  const std::string last = std::to_string(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Jobs(filter, last).jobs_size(), 0);
  EXPECT_EQ(Jobs({}, last).jobs_size(), 0);
}

}  // namespace
}  // namespace pelab::db
