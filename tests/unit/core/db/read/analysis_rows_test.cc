// Head ablations, deposit indices, other analyses and artifacts, as the views show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/db/read/reader.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

class AnalysisRowsTest : public ::testing::Test {
 protected:
  AnalysisRowsTest() {
    job_ = file_.AddJob({.key = "a1"});
    attempt_ = file_.AddAttempt(job_, 1, 0, "succeeded");
  }
  // Reads all rows, in pages of `limit`.
  template <typename Row, typename Request, typename List>
  std::vector<Row> All(Request request, const List& list, int limit) {
    auto reader = Reader::Open(file_.path());
    EXPECT_TRUE(reader.ok()) << reader.status();
    request.mutable_page()->set_limit(limit);
    std::vector<Row> rows;
    for (int page = 0; page < 100; ++page) {
      auto response = list(**reader, request);
      EXPECT_TRUE(response.ok()) << response.status();
      if (!response.ok()) break;
      EXPECT_LE(response->rows_size(), limit);
      rows.insert(rows.end(), response->rows().begin(), response->rows().end());
      request.mutable_page()->set_after(response->next());
      if (response->next().empty()) return rows;
    }
    ADD_FAILURE() << "the pages do not end";
    return rows;
  }
  std::vector<v1::HeadAblationRow> Heads(int limit) {
    return All<v1::HeadAblationRow>(
        v1::ListHeadAblationsRequest(),
        [](Reader& reader, const auto& request) { return reader.ListHeadAblations(request); },
        limit);
  }
  std::vector<v1::DepositRow> Deposits(int limit) {
    return All<v1::DepositRow>(
        v1::ListDepositsRequest(),
        [](Reader& reader, const auto& request) { return reader.ListDeposits(request); }, limit);
  }
  std::vector<v1::AnalysisRow> Analyses(int limit, const std::string& name = "") {
    v1::ListAnalysesRequest request;
    request.set_name(name);
    return All<v1::AnalysisRow>(
        request, [](Reader& reader, const auto& r) { return reader.ListAnalyses(r); }, limit);
  }

  DatabaseForTest file_;
  std::int64_t job_ = 0;
  std::int64_t attempt_ = 0;
};

TEST_F(AnalysisRowsTest, HeadAblationsHaveWhatFollowsFromTheirCounts) {
  file_.AddHeadAblation(job_, attempt_, 2, 2, 250, 300);
  file_.Execute(
      "UPDATE head_ablation SET correct = NULL, lost = NULL, gained = NULL, "
      "drop_standard_error = NULL, nll = NULL, nll_standard_error = NULL "
      "WHERE layer = 1 AND head = 1");
  const std::vector<v1::HeadAblationRow> rows = Heads(100);
  ASSERT_EQ(rows.size(), 4u);
  const v1::HeadAblationRow& row = rows[2];  // layer 1, head 0: 10 of 300 are lost
  EXPECT_EQ(row.target(), "head");
  EXPECT_EQ(row.lost(), 10);
  EXPECT_EQ(row.gained(), 0);
  EXPECT_DOUBLE_EQ(row.drop_standard_error(), stats::Drop({10, 0}, 300).standard_error);
  EXPECT_DOUBLE_EQ(row.normalised_drop(), (10 / 300.0) / (250 / 300.0 - 0.1));
  EXPECT_DOUBLE_EQ(row.nll(), 0.6);
  EXPECT_NEAR(row.nll_drop(), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(row.nll_drop_standard_error(), 0.01);
  EXPECT_EQ(row.chance(), 0.1);
  const v1::HeadAblationRow& missing = rows[3];
  EXPECT_FALSE(missing.has_correct() || missing.has_accuracy() || missing.has_accuracy_drop() ||
               missing.has_lost() || missing.has_gained() || missing.has_drop_standard_error() ||
               missing.has_normalised_drop() || missing.has_nll() || missing.has_nll_drop() ||
               missing.has_nll_drop_standard_error());
  EXPECT_EQ(missing.total(), 300);
}

TEST_F(AnalysisRowsTest, AMatrixOfVersion1HasCountsOnly) {
  file_.AddHeadAblation(job_, attempt_, 1, 1, 250, 300);
  file_.Execute(
      "UPDATE analyses SET version = 1, intact_nll = NULL, chance = NULL, "
      "parameters_json = json_remove(parameters_json, '$.target')");
  file_.Execute(
      "UPDATE head_ablation SET lost = NULL, gained = NULL, drop_standard_error = NULL, "
      "nll = NULL, nll_standard_error = NULL");
  const std::vector<v1::HeadAblationRow> rows = Heads(10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].target(), "head");
  EXPECT_EQ(rows[0].correct(), 250);
  EXPECT_EQ(rows[0].accuracy_drop(), 0);
  EXPECT_FALSE(rows[0].has_lost() || rows[0].has_chance() || rows[0].has_normalised_drop() ||
               rows[0].has_nll_drop());
}

TEST_F(AnalysisRowsTest, PagesBreakAnywhereAndKeepMatricesApart) {
  const auto other = file_.AddJob({.key = "b1"});
  file_.AddHeadAblation(job_, attempt_, 2, 3, 250, 300, "zero");
  file_.AddHeadAblation(job_, attempt_, 2, 3, 250, 300, "mean");
  // The same except for a parameter that no column shows.
  file_.AddHeadAblation(job_, attempt_, 2, 3, 240, 290, "resample");
  file_.Execute(
      "UPDATE analyses SET parameters_json = json_set(parameters_json, '$.method', 'zero', "
      "'$.max_examples', 290) WHERE total = 290");
  file_.AddHeadAblation(other, attempt_, 2, 3, 250, 300, "zero");
  const auto heads = Heads(1000);
  ASSERT_EQ(heads.size(), 24u);
  EXPECT_EQ(heads[0].method(), "mean");
  EXPECT_EQ(heads[6].total(), 300);
  EXPECT_EQ(heads[12].total(), 290);
  EXPECT_EQ(heads[18].job_id(), other);
  const auto deposits = Deposits(1000);
  ASSERT_EQ(deposits.size(), 12u);
  for (int limit = 1; limit <= 7; ++limit) {
    SCOPED_TRACE(limit);
    const auto pages = Heads(limit);
    ASSERT_EQ(pages.size(), heads.size());
    for (std::size_t i = 0; i < heads.size(); ++i) {
      EXPECT_EQ(pages[i].SerializeAsString(), heads[i].SerializeAsString()) << i;
    }
    const auto deposit_pages = Deposits(limit);
    ASSERT_EQ(deposit_pages.size(), deposits.size());
    for (std::size_t i = 0; i < deposits.size(); ++i) {
      EXPECT_EQ(deposit_pages[i].SerializeAsString(), deposits[i].SerializeAsString()) << i;
    }
  }
  v1::ListHeadAblationsRequest request;
  for (const char* place : {"1", "1:a:b:c:d:1:2", "1:a:b:c:d:1:2:x", "x:a:b:c:d:1:2:3"}) {
    request.mutable_page()->set_after(place);
    EXPECT_EQ((*Reader::Open(file_.path()))->ListHeadAblations(request).status().code(),
              absl::StatusCode::kInvalidArgument)
        << place;
  }
}

TEST_F(AnalysisRowsTest, DepositsBeginWithTheRowOverAllLayers) {
  file_.AddHeadAblation(job_, attempt_, 2, 2, 250, 300);
  file_.Execute("UPDATE deposit_indices SET deposit = 1 WHERE layer = 1");
  file_.Execute("UPDATE deposit_indices SET deposits = 1 WHERE layer = -1");
  const auto rows = Deposits(100);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_FALSE(rows[0].has_layer());
  EXPECT_FALSE(rows[0].has_deposit());
  EXPECT_EQ(rows[0].deposits(), 1);
  EXPECT_EQ(rows[0].method(), "zero");
  EXPECT_EQ(rows[0].target(), "head");
  EXPECT_EQ(rows[1].layer(), 0);
  EXPECT_FALSE(rows[1].has_max_drop()) << "1 of 300 is no drop";
  EXPECT_EQ(rows[2].layer(), 1);
  EXPECT_TRUE(rows[2].deposit());
  EXPECT_FALSE(rows[2].has_deposits());
  EXPECT_EQ(rows[2].top_layer(), 1);
  EXPECT_EQ(rows[2].top_head(), 1);
  EXPECT_DOUBLE_EQ(rows[2].max_drop(), 11 / 300.0);
  EXPECT_DOUBLE_EQ(rows[2].top_ratio(), 1.1);
}

TEST_F(AnalysisRowsTest, AnalysesBringTheirResultsInBoundedPages) {
  file_.AddHeadAblation(job_, attempt_, 1, 1, 250, 300);
  file_.AddAnalysis(job_, attempt_, "layer_ablation", R"({"total":300,"intact_correct":250})");
  const std::string large = R"({"x":")" + std::string(700'000, 'x') + R"("})";
  file_.AddAnalysis(job_, attempt_, "probe", large);
  file_.AddAnalysis(job_, attempt_, "probe_2", large);
  file_.AddAnalysis(job_, attempt_, "probe_3", large);
  const auto rows = Analyses(1000);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].name(), "head_ablation");
  EXPECT_EQ(rows[0].total(), 300);
  EXPECT_EQ(rows[0].intact_correct(), 250);
  EXPECT_FALSE(rows[0].has_result_json());
  EXPECT_EQ(rows[1].total(), 300);
  EXPECT_EQ(rows[1].intact_correct(), 250);
  EXPECT_EQ(rows[1].seconds(), 2.5);
  EXPECT_EQ(rows[1].created_at_ms(), 9000);
  EXPECT_FALSE(rows[2].has_total());
  EXPECT_EQ(rows[4].result_json(), large);
  auto reader = Reader::Open(file_.path());
  const auto first = (*reader)->ListAnalyses({});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->rows_size(), 4) << "1 MiB of results ends a page";
  EXPECT_NE(first->next(), "");
  EXPECT_EQ(Analyses(1, "probe").size(), 1u);
}

TEST_F(AnalysisRowsTest, PagesBreakAfterAnyName) {
  const std::string sha(64, 'a');
  const std::vector<std::string> names = {"", "%", "%25", "%3a", ":", "::", "a\nb", "a:b", "ü:数"};
  for (const std::string& name : names) file_.AddArtifact(attempt_, name, sha, 10);
  const auto rows = All<v1::ArtifactRow>(
      v1::ListArtifactsRequest(),
      [](Reader& reader, const auto& request) { return reader.ListArtifacts(request); }, 1);
  ASSERT_EQ(rows.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(rows[i].name(), names[i]);
  file_.AddHeadAblation(job_, attempt_, 1, 2, 250, 300, "a:%b");
  EXPECT_EQ(Heads(1).size(), 2u);
}

TEST_F(AnalysisRowsTest, ArtifactsAreThoseOfTheLatestAttemptThatHasThem) {
  const std::string sha = std::string(64, 'a');
  const std::string newer = std::string(64, 'b');
  const auto second = file_.AddAttempt(job_, 2, 0, "succeeded");
  file_.AddArtifact(attempt_, "weights.safetensors", sha, 10);
  file_.AddArtifact(attempt_, "other", sha, 10);
  file_.AddArtifact(second, "weights.safetensors", newer, 12);
  const auto rows = All<v1::ArtifactRow>(
      v1::ListArtifactsRequest(),
      [](Reader& reader, const auto& request) { return reader.ListArtifacts(request); }, 1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name(), "other");
  EXPECT_EQ(rows[1].name(), "weights.safetensors");
  EXPECT_EQ(rows[1].sha256(), newer);
  EXPECT_EQ(rows[1].bytes(), 12u);
  EXPECT_EQ(rows[1].job_id(), job_);
}

TEST_F(AnalysisRowsTest, AJobThatAddsAnalysesIsStillTheResult) {
  file_.Execute("UPDATE jobs SET state = 'queued'");
  file_.AddJob({.key = "a1", .generation = 2, .state = "running"});
  const auto jobs = (*Reader::Open(file_.path()))->ListJobs({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->jobs_size(), 1);
  EXPECT_EQ(jobs->jobs(0).job_id(), job_);
  EXPECT_EQ(jobs->jobs(0).state(), v1::JOB_STATE_QUEUED);
  EXPECT_TRUE(jobs->jobs(0).trained());
}

}  // namespace
}  // namespace pelab::db
