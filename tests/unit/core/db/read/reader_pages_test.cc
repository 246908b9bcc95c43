// Pages of the reader: every row once, bounded by number and by bytes, and positions that are not
// pages' own are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/db/read/reader_fixture.h"

namespace pelab::db {
namespace {

TEST_F(ReaderTest, PagesHoldEveryJobOnce) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < 7; ++i) all.push_back(file_.AddJob({.key = "a" + std::to_string(i)}));
  std::vector<std::int64_t> seen;
  std::string after;
  int pages = 0;
  do {
    const auto page = Jobs({}, after, 3);
    EXPECT_LE(page.jobs_size(), 3);
    for (auto id : Ids(page)) seen.push_back(id);
    after = page.next();
    ++pages;
  } while (!after.empty() && pages < 10);
  EXPECT_EQ(seen, all);
  EXPECT_EQ(pages, 3);
}

TEST_F(ReaderTest, BadPagesAreRefused) {
  v1::ListJobsRequest request;
  request.mutable_page()->set_limit(kMaxPage + 1);
  EXPECT_EQ(Open()->ListJobs(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.mutable_page()->set_limit(-1);
  EXPECT_EQ(Open()->ListJobs(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.mutable_page()->set_limit(1);
  request.mutable_page()->set_after("x");
  EXPECT_EQ(Open()->ListJobs(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReaderTest, CurvePagesBreakWithinAJob) {
  for (int j = 0; j < 3; ++j) {
    const auto job = file_.AddJob({.key = "a" + std::to_string(j), .epochs = 5});
    const auto attempt = file_.AddAttempt(job, 1, 0, "succeeded");
    for (int epoch = 0; epoch < 5; ++epoch) file_.AddEpoch(attempt, epoch, epoch);
  }
  auto reader = Open();
  v1::ListCurvesRequest request;
  request.mutable_page()->set_limit(4);
  std::vector<std::pair<std::int64_t, int>> seen;
  for (int page = 0; page < 10; ++page) {
    auto response = reader->ListCurves(request);
    ASSERT_TRUE(response.ok()) << response.status();
    for (const auto& row : response->rows()) seen.emplace_back(row.job_id(), row.epoch());
    request.mutable_page()->set_after(response->next());
    if (response->next().empty()) break;
  }
  EXPECT_EQ(seen.size(), 15u);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 15u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  request.mutable_page()->set_after("1");
  EXPECT_EQ(reader->ListCurves(request).status().code(), absl::StatusCode::kInvalidArgument);
}

// Long texts, which earlier versions stored.
TEST_F(ReaderTest, APageEndsByItsBytes) {
  for (int i = 0; i < 20; ++i) file_.AddSweep("s" + std::to_string(i));
  file_.Execute("UPDATE sweeps SET file_name = hex(zeroblob(524288))");
  const auto reader = Open();
  v1::ListSweepsRequest request;
  std::set<std::int64_t> sweeps;
  int pages = 0;
  do {
    const auto page = reader->ListSweeps(request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LT(page->ByteSizeLong(), std::size_t{4} << 20);
    for (const v1::Sweep& sweep : page->sweeps()) {
      EXPECT_TRUE(sweeps.insert(sweep.sweep_id()).second) << sweep.sweep_id();
    }
    request.mutable_page()->set_after(page->next());
    ++pages;
  } while (!request.page().after().empty());
  EXPECT_EQ(sweeps.size(), 20u);
  EXPECT_GT(pages, 5);
}

TEST_F(ReaderTest, APageOfJobsEndsByItsBytes) {
  constexpr int kJobs = 1200;
  for (int i = 0; i < kJobs; ++i) file_.AddJob({.key = "a" + std::to_string(i) + "b"});
  file_.Execute("UPDATE jobs SET error = hex(zeroblob(8192))");
  for (const bool specs_apart : {false, true}) {
    v1::ListJobsRequest request;
    request.set_specs_apart(specs_apart);
    request.mutable_page()->set_limit(kMaxPage);
    const auto reader = Open();
    std::set<std::int64_t> jobs;
    int pages = 0;
    do {
      const auto page = reader->ListJobs(request);
      ASSERT_TRUE(page.ok()) << page.status();
      EXPECT_LT(page->ByteSizeLong(), std::size_t{12} << 20);
      for (const v1::JobRow& job : page->jobs()) EXPECT_TRUE(jobs.insert(job.job_id()).second);
      request.mutable_page()->set_after(page->next());
      ++pages;
    } while (!request.page().after().empty());
    EXPECT_EQ(jobs.size(), static_cast<std::size_t>(kJobs));
    EXPECT_GE(pages, 2);
  }
}

TEST_F(ReaderTest, WorkersComeInPages) {
  constexpr int kWorkers = 5000;
  // Several have the same name, and some names look like positions of pages.
  file_.Execute("DELETE FROM workers");
  file_.Execute(
      "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
      "INSERT INTO workers (worker_id, host, version, slots_json, slots, capabilities_json, state, "
      "last_seen_at, name) SELECT 'id' || i, 'h', '1', '[]', 0, '', 'offline', 0, "
      "CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN '4:' || (i / 7) ELSE 'ä:' || (i / 7) END FROM n");
  const auto reader = Open();
  for (const int limit : {0, 7, 10'000}) {
    v1::ListWorkersRequest request;
    request.mutable_page()->set_limit(limit);
    std::vector<std::pair<std::string, std::string>> workers;
    do {
      const auto page = reader->ListWorkers(request);
      ASSERT_TRUE(page.ok()) << page.status();
      EXPECT_LE(page->workers_size(), limit == 0 ? kDefaultPage : limit);
      for (const v1::WorkerRow& row : page->workers()) {
        workers.emplace_back(row.name(), row.worker_id());
      }
      request.mutable_page()->set_after(page->next());
    } while (!request.page().after().empty() && workers.size() <= kWorkers);
    EXPECT_EQ(workers.size(), static_cast<std::size_t>(kWorkers));
    EXPECT_TRUE(std::is_sorted(workers.begin(), workers.end()));
    EXPECT_EQ(std::adjacent_find(workers.begin(), workers.end()), workers.end());
  }
  v1::ListWorkersRequest request;
  for (const char* place : {"x", ":", "9:ab", "-1:a"}) {
    request.mutable_page()->set_after(place);
    EXPECT_EQ(reader->ListWorkers(request).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace pelab::db
