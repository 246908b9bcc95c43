#include "core/db/read/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "core/experiment/configuration.h"
#include "migrations/schema.h"
#include "tests/unit/core/db/database_fixture.h"
#include "tests/unit/core/db/read/reader_fixture.h"

namespace pelab::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

v1::JobFilter OfJob(const std::string& job) {
  v1::JobFilter filter;
  filter.add_jobs(job);
  return filter;
}

TEST(ReaderOpenTest, NamesWhatIsWrongWithAFile) {
  DatabaseForTest file;
  auto missing = Reader::Open(file.directory() + "/none.db");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing.status()), HasSubstr("none.db"));
  EXPECT_FALSE(std::ifstream(file.directory() + "/none.db").good())
      << "a reader must not make a file";

  // A coordinator that could not listen leaves an empty file.
  std::ofstream(file.directory() + "/empty.db").flush();
  auto empty = Reader::Open(file.directory() + "/empty.db");
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(empty.status()), HasSubstr("/empty.db yet: nothing was stored"));

  std::ofstream(file.directory() + "/text") << std::string(8192, 'x');
  auto text = Reader::Open(file.directory() + "/text");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(text.status()), HasSubstr("not a pelab database"));

  auto directory = Reader::Open(file.directory());
  EXPECT_THAT(Message(directory.status()), HasSubstr("is a directory"));

  // Opening a pipe would wait for a writer.
  ASSERT_EQ(mkfifo((file.directory() + "/pipe").c_str(), 0600), 0);
  auto pipe = Reader::Open(file.directory() + "/pipe");
  EXPECT_EQ(pipe.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(pipe.status()), HasSubstr("/pipe is a pipe, not a pelab database"));
  auto device = Reader::Open("/dev/null");
  EXPECT_THAT(Message(device.status()), HasSubstr("/dev/null is a device, not a pelab database"));

  SQLite::Database(file.directory() + "/other.db", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE t (x)");
  auto other = Reader::Open(file.directory() + "/other.db");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(other.status()), HasSubstr("application id is 0"));
}

TEST(ReaderOpenTest, RefusesNewerSchemasAndThoseFromBeforeTheFirstRelease) {
  DatabaseForTest file;
  file.Execute("PRAGMA user_version = " + std::to_string(migrations::NewestSchema() + 1));
  auto newer = Reader::Open(file.path());
  EXPECT_EQ(newer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(newer.status()), HasSubstr("from a newer pelab"));
  file.Execute("PRAGMA user_version = " + std::to_string(migrations::kFirstSchema - 1));
  EXPECT_THAT(Message(Reader::Open(file.path()).status()),
              HasSubstr("from before the first release"));
}

TEST_F(ReaderTest, ReadsBesideAWriterAndWithoutOne) {
  const auto job = file_.AddJob({.key = "a1"});
  auto reader = Open();
  EXPECT_THAT(Ids(*reader->ListJobs({})), ElementsAre(job));
  const auto second = file_.AddJob({.key = "a2"});  // the open reader sees later commits
  EXPECT_THAT(Ids(*reader->ListJobs({})), ElementsAre(job, second));
  reader.reset();
  file_.Close();
  EXPECT_THAT(Ids(Jobs()), ElementsAre(job, second));
}

TEST_F(ReaderTest, NeverWrites) {
  file_.AddJob({.key = "a1"});
  file_.Close();
  std::ifstream before(file_.path(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(before)), {});
  Jobs();
  std::ifstream after(file_.path(), std::ios::binary);
  EXPECT_EQ(bytes, std::string((std::istreambuf_iterator<char>(after)), {}));
}

TEST_F(ReaderTest, JobRowsCarryEveryColumn) {
  const auto id = file_.AddJob({.key = "abc123",
                                .generation = 3,
                                .pe = "alibi",
                                .task = "counting",
                                .seed = 9007199254740991,
                                .state = "running",
                                .epochs = 7,
                                .spec_json = R"({"seed":9007199254740991})"});
  file_.Summarize(id, 2, 100, 200, 300);
  const auto jobs = Jobs();
  ASSERT_EQ(jobs.jobs_size(), 1);
  const v1::JobRow& row = jobs.jobs(0);
  EXPECT_EQ(row.key().substr(0, 6), "abc123");
  EXPECT_EQ(row.generation(), 3);
  EXPECT_EQ(row.pe(), "alibi");
  EXPECT_EQ(row.pe_label(), "alibi");
  EXPECT_EQ(row.task(), "counting");
  EXPECT_EQ(row.protocol(), "clean");
  EXPECT_EQ(row.seed(), 9007199254740991);
  EXPECT_EQ(row.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(row.epochs(), 7);
  EXPECT_EQ(row.epochs_done(), 2);
  EXPECT_EQ(row.test_accuracy(), 100.0 / 300.0);
  EXPECT_EQ(row.best_test_accuracy(), 200.0 / 300.0);
  EXPECT_EQ(row.test_correct(), 100);
  EXPECT_EQ(row.test_total(), 300);
  EXPECT_EQ(row.wall_seconds(), 1.5);
  EXPECT_EQ(row.device(), "cpu");
  EXPECT_FALSE(row.has_error());
  EXPECT_EQ(row.spec_json(), R"({"seed":9007199254740991})");
}

TEST_F(ReaderTest, SpecsApartComeOnceAPageAndAreTheSame) {
  const auto add = [&](const std::string& key, std::int64_t seed, std::int64_t data_seed) {
    file_.AddJob({.key = key,
                  .seed = seed,
                  .spec_json = "{\"seed\":" + std::to_string(seed) +
                               ",\"task\":{\"data_seed\":" + std::to_string(data_seed) + "}}"});
  };
  add("a1", 0, 0);
  add("a2", 9007199254740991, 9007199254740991);
  add("a3", 2, 9);
  add("a4", 9, 9);
  std::map<std::int64_t, std::string> whole;
  std::map<std::int64_t, std::int64_t> configuration;
  const v1::ListJobsResponse all = Jobs();
  for (const v1::JobRow& row : all.jobs()) {
    whole[row.job_id()] = row.spec_json();
    configuration[row.job_id()] = row.configuration_id();
  }
  v1::ListJobsRequest request;
  request.set_specs_apart(true);
  request.mutable_page()->set_limit(3);
  std::vector<int> sizes;
  do {
    const auto page = Open()->ListJobs(request);
    ASSERT_TRUE(page.ok()) << page.status();
    std::map<std::int64_t, std::string> templates;
    for (const v1::Configuration& one : page->configurations()) {
      templates[one.configuration_id()] = one.spec_template();
    }
    for (const v1::JobRow& row : page->jobs()) {
      EXPECT_EQ(row.spec_json(), "");
      EXPECT_EQ(row.configuration_id(), configuration[row.job_id()]);
      EXPECT_EQ(experiment::FillTemplate(templates[row.configuration_id()], row.seed()),
                whole[row.job_id()]);
    }
    sizes.push_back(page->configurations_size());
    request.mutable_page()->set_after(page->next());
  } while (!request.page().after().empty());
  EXPECT_THAT(sizes, ElementsAre(2, 1));
}

TEST_F(ReaderTest, WhatIsNullIsAbsent) {
  file_.AddJob({.key = "a1", .state = "queued"});
  const v1::JobRow row = Jobs().jobs(0);
  EXPECT_FALSE(row.has_test_accuracy());
  EXPECT_FALSE(row.has_test_total());
  EXPECT_FALSE(row.has_device());
  EXPECT_FALSE(row.has_wall_seconds());
}

TEST_F(ReaderTest, SweepsAreFoundByNumberAndByNewestName) {
  const auto old_sweep = file_.AddSweep("table1");
  const auto new_sweep = file_.AddSweep("table1");
  const auto a = file_.AddJob({.key = "a1"});
  const auto b = file_.AddJob({.key = "b1"});
  file_.AddToSweep(old_sweep, 0, a);
  file_.AddToSweep(new_sweep, 0, b);
  v1::JobFilter filter;
  filter.set_sweep("table1");
  EXPECT_THAT(Ids(Jobs(filter)), ElementsAre(b));
  filter.set_sweep(std::to_string(old_sweep));
  EXPECT_THAT(Ids(Jobs(filter)), ElementsAre(a));
  v1::ListJobsRequest request;
  request.mutable_filter()->set_sweep("tabel1");
  const auto unknown = Open()->ListJobs(request);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(unknown.status()), HasSubstr("tabel1"));
}

TEST_F(ReaderTest, ASweepShowsTheGenerationThatSucceededLast) {
  const auto sweep = file_.AddSweep("s");
  const auto old_job = file_.AddJob({.key = "aaaaaa", .generation = 1});
  file_.AddToSweep(sweep, 0, old_job);
  v1::JobFilter filter;
  filter.set_sweep("s");
  const auto running = file_.AddJob({.key = "aaaaaa", .generation = 2, .state = "running"});
  EXPECT_THAT(Ids(Jobs(filter)), ElementsAre(old_job)) << "what runs again does not hide a result";
  file_.Execute("UPDATE jobs SET state = 'succeeded', trained = 1 WHERE job_id = " +
                std::to_string(running));
  EXPECT_THAT(Ids(Jobs(filter)), ElementsAre(running));
  v1::ListJobsRequest request;
  *request.mutable_filter() = OfJob(std::to_string(old_job));
  EXPECT_THAT(Message(Open()->ListJobs(request).status()),
              HasSubstr("the one that counts is job " + std::to_string(running)));
}

TEST_F(ReaderTest, ASweepsOwnJobsAreShownWhateverTheirGeneration) {
  const auto sweep = file_.AddSweep("s");
  const auto own = file_.AddJob({.key = "aaaaaa", .generation = 1});
  const auto alone = file_.AddJob({.key = "bbbbbb", .generation = 1});
  file_.AddToSweep(sweep, 0, own);
  file_.AddToSweep(sweep, 1, alone);
  file_.AddJob({.key = "aaaaaa", .generation = 2});
  v1::JobFilter filter;
  filter.set_sweep("s");
  filter.set_own_jobs(true);
  EXPECT_THAT(Ids(Jobs(filter)), ElementsAre(own, alone));
  v1::ListAttemptsRequest attempts;  // a list that reads job by job
  const auto attempt = file_.AddAttempt(own, 1, 0, "succeeded");
  *attempts.mutable_filter() = filter;
  const auto found = Open()->ListAttempts(attempts);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->rows_size(), 1);
  EXPECT_EQ(found->rows(0).attempt_id(), attempt);
}

TEST_F(ReaderTest, OwnJobsHaveTheColumnsOfTheView) {
  const auto sweep = file_.AddSweep("s");
  const auto job = file_.AddJob({.key = "aaaaaa"});
  file_.AddToSweep(sweep, 0, job);
  file_.Summarize(job, 2, 100, 150, 300);
  v1::JobFilter filter;
  filter.set_sweep("s");
  const auto shown = Jobs(filter);
  filter.set_own_jobs(true);
  const auto own = Jobs(filter);
  ASSERT_EQ(own.jobs_size(), 1);
  EXPECT_EQ(own.jobs(0).SerializeAsString(), shown.jobs(0).SerializeAsString());
}

TEST_F(ReaderTest, JobsAreFoundByNumberAndKeyPrefix) {
  const auto a = file_.AddJob({.key = "abcdef1"});
  const auto b = file_.AddJob({.key = "abcdef2"});
  const auto digits = file_.AddJob({.key = "123456789"});
  EXPECT_THAT(Ids(Jobs(OfJob(std::to_string(a)))), ElementsAre(a));
  EXPECT_THAT(Ids(Jobs(OfJob("ABCDEF2"))), ElementsAre(b));
  EXPECT_THAT(Ids(Jobs(OfJob("123456"))), ElementsAre(digits));
  const auto code = [&](const std::string& job) {
    v1::ListJobsRequest request;
    *request.mutable_filter() = OfJob(job);
    return Open()->ListJobs(request).status().code();
  };
  EXPECT_EQ(code("abcdef"), absl::StatusCode::kInvalidArgument) << "two keys";
  EXPECT_EQ(code("abcde"), absl::StatusCode::kInvalidArgument) << "too short";
  EXPECT_EQ(code("rope"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("999"), absl::StatusCode::kNotFound);
  EXPECT_EQ(code("fedcba"), absl::StatusCode::kNotFound);
}

TEST_F(ReaderTest, StatesFilter) {
  file_.AddJob({.key = "a1", .state = "failed"});
  const auto b = file_.AddJob({.key = "b1", .state = "queued"});
  const auto c = file_.AddJob({.key = "c1", .state = "running"});
  v1::JobFilter filter;
  filter.add_states(v1::JOB_STATE_QUEUED);
  filter.add_states(v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Ids(Jobs(filter)), ElementsAre(b, c));
}

TEST_F(ReaderTest, CurvesAreTheAcceptedLineBitForBit) {
  const auto job = file_.AddJob({.key = "a1", .epochs = 4});
  const auto first = file_.AddAttempt(job, 1, 0, "lost");
  const auto second = file_.AddAttempt(job, 2, 2, "succeeded");
  for (int epoch = 0; epoch < 3; ++epoch) file_.AddEpoch(first, epoch, 10 + epoch);
  for (int epoch = 2; epoch < 4; ++epoch) file_.AddEpoch(second, epoch, 20 + epoch);
  auto curves = Open()->ListCurves({});
  ASSERT_TRUE(curves.ok()) << curves.status();
  ASSERT_EQ(curves->rows_size(), 4);
  SQLite::Statement sql(file_.db(), "SELECT * FROM v_curves WHERE job_id = ? ORDER BY epoch");
  sql.bind(1, job);
  const int expected_correct[] = {10, 11, 22, 23};
  for (int epoch = 0; epoch < 4; ++epoch) {
    ASSERT_TRUE(sql.executeStep());
    const v1::CurveRow& row = curves->rows(epoch);
    EXPECT_EQ(row.job_id(), job);
    EXPECT_EQ(row.epoch(), epoch);
    EXPECT_EQ(row.test_correct(), expected_correct[epoch]);
    const double stored[] = {sql.getColumn("train_loss"),    sql.getColumn("train_accuracy"),
                             sql.getColumn("test_loss"),     sql.getColumn("test_accuracy"),
                             sql.getColumn("learning_rate"), sql.getColumn("seconds")};
    const double read[] = {row.train_loss(),    row.train_accuracy(), row.test_loss(),
                           row.test_accuracy(), row.learning_rate(),  row.seconds()};
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(stored[i]), std::bit_cast<std::uint64_t>(read[i]))
          << i;
    }
    EXPECT_EQ(row.train_loss(), 1.0 / (epoch + 3));
  }
}

TEST_F(ReaderTest, HeadAblationsHaveTheirCountsAndPages) {
  const auto job = file_.AddJob({.key = "a1"});
  const auto attempt = file_.AddAttempt(job, 1, 0, "succeeded");
  file_.AddHeadAblation(job, attempt, 2, 3, 250, 300, "zero");
  file_.AddHeadAblation(job, attempt, 2, 3, 250, 300, "mean");
  auto reader = Open();
  v1::ListHeadAblationsRequest request;
  request.mutable_page()->set_limit(4);
  std::vector<v1::HeadAblationRow> rows;
  for (int page = 0; page < 10; ++page) {
    auto response = reader->ListHeadAblations(request);
    ASSERT_TRUE(response.ok()) << response.status();
    rows.insert(rows.end(), response->rows().begin(), response->rows().end());
    request.mutable_page()->set_after(response->next());
    if (response->next().empty()) break;
  }
  ASSERT_EQ(rows.size(), 12u);
  for (int i = 0; i < 12; ++i) {
    const int layer = i % 6 / 3, head = i % 3, drop = 10 * layer + head;
    EXPECT_EQ(rows[i].method(), i < 6 ? "mean" : "zero");
    EXPECT_EQ(rows[i].hygiene(), "clean");
    EXPECT_EQ(rows[i].split(), "test");
    EXPECT_EQ(rows[i].layer(), layer);
    EXPECT_EQ(rows[i].head(), head);
    EXPECT_EQ(rows[i].correct(), 250 - drop);
    EXPECT_EQ(rows[i].total(), 300);
    EXPECT_EQ(rows[i].intact_correct(), 250);
    EXPECT_EQ(rows[i].accuracy(), (250 - drop) / 300.0);
    EXPECT_EQ(rows[i].accuracy_drop(), drop / 300.0);
  }
}

TEST_F(ReaderTest, SweepsCountTheirJobs) {
  const auto sweep = file_.AddSweep("s");
  const char* states[] = {"queued", "running", "succeeded", "succeeded"};
  for (int i = 0; i < 4; ++i) {
    const auto job =
        file_.AddJob({.key = "a" + std::to_string(i), .state = states[i], .epochs = 10});
    file_.AddToSweep(sweep, i, job);
    file_.Execute("UPDATE jobs SET epochs_done = " + std::to_string(i) +
                  " WHERE job_id = " + std::to_string(job));
  }
  const auto found = Open()->GetSweep("s");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->state(), v1::SWEEP_STATE_ACTIVE);
  EXPECT_EQ(found->document(), "name: x");
  EXPECT_EQ(found->counts().new_jobs(), 4u);
  EXPECT_EQ(found->counts().total(), 4u);
  EXPECT_EQ(found->jobs().queued(), 1u);
  EXPECT_EQ(found->jobs().running(), 1u);
  EXPECT_EQ(found->jobs().succeeded(), 2u);
  EXPECT_EQ(found->epochs_total(), 40u);
  EXPECT_EQ(found->epochs_done(), 6u);

  const auto later = file_.AddSweep("t", "expanding");
  v1::ListSweepsRequest request;
  request.mutable_page()->set_limit(1);
  auto page = Open()->ListSweeps(request);
  ASSERT_EQ(page->sweeps_size(), 1);
  EXPECT_EQ(page->sweeps(0).sweep_id(), later) << "newest first";
  request.mutable_page()->set_after(page->next());
  page = Open()->ListSweeps(request);
  EXPECT_EQ(page->sweeps(0).sweep_id(), sweep);
  EXPECT_EQ(page->next(), "");
}

TEST_F(ReaderTest, AttemptsAndWorkers) {
  const auto job = file_.AddJob({.key = "a1", .state = "running"});
  file_.AddAttempt(job, 1, 0, "lost");
  file_.AddAttempt(job, 2, 1, "");
  auto attempts = Open()->ListAttempts({});
  ASSERT_TRUE(attempts.ok()) << attempts.status();
  ASSERT_EQ(attempts->rows_size(), 2);
  EXPECT_EQ(attempts->rows(0).outcome(), v1::ATTEMPT_OUTCOME_LOST);
  EXPECT_EQ(attempts->rows(1).outcome(), v1::ATTEMPT_OUTCOME_UNSPECIFIED);
  EXPECT_EQ(attempts->rows(1).start_epoch(), 1);
  EXPECT_EQ(attempts->rows(1).worker(), "w1");
  auto workers = Open()->ListWorkers({});
  ASSERT_TRUE(workers.ok()) << workers.status();
  ASSERT_EQ(workers->workers_size(), 1);
  EXPECT_EQ(workers->workers(0).host(), "host-a");
  EXPECT_EQ(workers->workers(0).slots(), 2);
  EXPECT_EQ(workers->workers(0).busy_slots(), 1);
}

TEST_F(ReaderTest, LogsComeFromAnOffset) {
  const auto job = file_.AddJob({.key = "a1"});
  const auto first = file_.AddAttempt(job, 1, 0, "lost");
  const auto second = file_.AddAttempt(job, 2, 0, "succeeded");
  file_.Execute("INSERT INTO logs VALUES (" + std::to_string(first) + ", 0, x'6f6c64')");
  file_.Execute("INSERT INTO logs VALUES (" + std::to_string(second) + ", 0, x'616263')");
  file_.Execute("INSERT INTO logs VALUES (" + std::to_string(second) + ", 100, x'00ff0a')");
  const std::string id = std::to_string(job);
  auto parts = Open()->ReadLog(id, 0, 1);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].attempt(), 2);
  EXPECT_EQ((*parts)[0].offset(), 1u);
  EXPECT_EQ((*parts)[0].data(), "bc");
  EXPECT_EQ((*parts)[1].offset(), 100u);
  EXPECT_EQ((*parts)[1].data(), std::string("\0\xff\n", 3));
  EXPECT_EQ((*Open()->ReadLog(id, 1, 0))[0].data(), "old");
  EXPECT_TRUE(Open()->ReadLog(id, 2, 103)->empty());
  EXPECT_EQ(Open()->ReadLog(id, 3, 0).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ReaderTest, KeysThatAreStored) {
  const std::string key = "abc" + std::string(61, '0');
  file_.AddJob({.key = key, .generation = 1, .state = "succeeded"});
  file_.AddJob({.key = key, .generation = 2, .state = "failed"});
  auto found = Open()->FindKeys({std::string(64, 'f'), key}, {});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->at(key).state, v1::JOB_STATE_SUCCEEDED) << "a later failure does not hide it";
  EXPECT_FALSE(found->at(key).lacks_analyses);
}

TEST_F(ReaderTest, WhatStoredJobsLack) {
  const std::string bare = std::string(64, 'a'), whole = std::string(64, 'b');
  file_.AddJob({.key = bare, .state = "succeeded"});
  const auto job = file_.AddJob({.key = whole, .state = "succeeded"});
  const auto attempt = file_.AddAttempt(job, 1, 0, "succeeded");
  file_.AddAnalysis(job, attempt, "layer_ablation", "{}");
  file_.AddArtifact(attempt, "weights.safetensors", std::string(64, 'c'), 10);
  auto stored = Open()->ListAnalyses({});
  ASSERT_TRUE(stored.ok()) << stored.status();
  v1::Analysis wanted;
  wanted.set_name("layer_ablation");
  wanted.set_version(stored->rows(0).version());
  wanted.set_parameters_json(stored->rows(0).parameters_json());
  auto found = Open()->FindKeys({bare, whole}, {wanted});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->at(bare).lacks_analyses);
  EXPECT_FALSE(found->at(bare).has_weights);
  EXPECT_FALSE(found->at(whole).lacks_analyses);
  EXPECT_TRUE(found->at(whole).has_weights);
  wanted.set_parameters_json("{\"method\":\"another\"}");
  EXPECT_TRUE(Open()->FindKeys({whole}, {wanted})->at(whole).lacks_analyses);
}

}  // namespace
}  // namespace pelab::db
