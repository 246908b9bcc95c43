// A store, on a file or in memory, with short functions to write to it and to read it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/db/schema.h"
#include "server/store/database.h"
#include "server/store/store.h"

namespace pelab::store {

inline constexpr char kAnalyses[] =
    R"([{"name":"head_ablation","version":2,"parameters_json":"{\"data\":\"test\",\"hygiene\":\"raw\",\"method\":\"zero\"}"}])";
inline constexpr char kParameters[] = R"({"data":"test","hygiene":"raw","method":"zero"})";

inline const std::string kWeightsHash = std::string(64, 'a');

inline NewCell Cell(std::uint64_t ordinal, const std::string& key, int epochs = 3) {
  return {
      .ordinal = ordinal,
      .key = key,
      .pe_label = "rope",
      .protocol_label = "clean",
      .seed = static_cast<std::int64_t>(ordinal),
      .spec_json = R"({"pe":{"name":"rope","version":2},"task":{"name":"distance","version":3}})",
      .requirement = {.pe = "rope",
                      .pe_version = 2,
                      .task = "distance",
                      .task_version = 3,
                      .device_kind = "any"},
      .epochs = epochs};
}

inline Epoch MakeEpoch(int epoch, int correct = 40) {
  return {.epoch = epoch,
          .train_loss = 1.0 / (3 + epoch),
          .train_correct = correct,
          .train_total = 99,
          .test_loss = 1.0 / (7 + epoch),
          .test_correct = correct + epoch,
          .test_total = 97,
          .learning_rate = 0.001,
          .seconds = 2.0};
}

// A matrix of 2 x 2 heads on 97 examples, 42 of them right when intact. The last entry does not
// exist.
inline HeadAblation Matrix(const std::string& parameters = kParameters) {
  return {.version = 2,
          .parameters_json = parameters,
          .layers = 2,
          .heads = 2,
          .total = 97,
          .intact_correct = 42,
          .intact_nll = 1.25,
          .chance = 1.0 / 70,
          .entries =
              {AblatedHead{
                   .correct = 10, .lost = 35, .gained = 3, .nll = 2.5, .nll_standard_error = 0.125},
               AblatedHead{.correct = 42, .lost = 2, .gained = 2, .nll = 1.25},
               AblatedHead{.correct = 40, .lost = 3, .gained = 1, .nll = 1.5}, std::nullopt},
          .seconds = 0.5};
}

// Numbers the events of one attempt.
struct Attempt {
  std::int64_t id = 0;
  std::uint64_t token = 0;
  std::uint64_t sequence = 0;
  AttemptEvent Next(decltype(AttemptEvent::body) body) {
    return {.attempt_id = id,
            .token = token,
            .sequence = ++sequence,
            .body = std::move(body),
            .now = 5000,
            .jitter = 0.5};
  }
};

class StoreTest : public testing::TestWithParam<bool> {
 protected:
  StoreTest() {
    std::string pattern = testing::TempDir() + "storeXXXXXX";
    directory_ = mkdtemp(pattern.data());
    path_ = GetParam() ? directory_ + "/pelab.db" : ":memory:";
    Open();
  }
  ~StoreTest() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Open() {
    store_.reset();
    StoreOptions options;
    options.has_artifact = [this](const std::string& sha256) { return sha256 != gone_artifact_; };
    options.dropped = dropped_callback_;
    options.staging = staging_;
    auto store = Store::Open(path_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  template <typename Result>
  Result Do(Write write) {
    const std::vector<Write> writes = {std::move(write)};
    auto results = store_->Apply(writes);
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(results->front().ok()) << results->front().status();
    return std::get<Result>(*results->front());
  }
  EventStored Event(const AttemptEvent& event) { return Do<EventStored>(event); }

  std::int64_t Submit(const std::string& token, const std::vector<NewCell>& cells,
                      bool fresh = false, int priority = 0,
                      const std::string& analyses = kAnalyses) {
    const auto stored = Do<SweepStored>(SubmitSweep{.name = "sweep-" + token,
                                                    .protocol = "clean",
                                                    .document = "doc",
                                                    .file_name = "f.yaml",
                                                    .overrides_json = "[]",
                                                    .client_token = token,
                                                    .analyses_json = analyses,
                                                    .resources_json = "{}",
                                                    .priority = priority,
                                                    .fresh = fresh,
                                                    .cells = cells.size(),
                                                    .now = 1000});
    slice_ = Do<SliceStored>(ExpandSlice{.sweep_id = stored.sweep_id,
                                         .from = 0,
                                         .next = cells.size(),
                                         .last = true,
                                         .cells = cells,
                                         .now = 1000});
    return stored.sweep_id;
  }
  void AddWorker(const std::string& id = "w") {
    Do<WorkerStored>(WorkerHello{.worker_id = id,
                                 .host = "h",
                                 .version = "1",
                                 .slots_json = "[]",
                                 .slots = 1,
                                 .capabilities_json = "{}",
                                 .now = 1000});
  }
  Attempt Assign(std::int64_t job_id, std::uint64_t token = 77) {
    AddWorker();
    const auto created = Do<AttemptCreated>(CreateAttempt{.job_id = job_id,
                                                          .worker_id = "w",
                                                          .slot = 0,
                                                          .device = "cpu",
                                                          .token = token,
                                                          .now = 2000});
    EXPECT_TRUE(created.assignment.has_value());
    if (!created.assignment) return {};
    assignment_ = *created.assignment;
    return {assignment_.attempt_id, token};
  }
  // Trains the only job of a sweep and stores its matrix and its weights.
  void TrainWhole(std::int64_t job_id = 1, bool keep_weights = true) {
    Attempt attempt = Assign(job_id, 70 + job_id);
    Train(attempt, 0, 3);
    for (const Analysis& analysis : assignment_.analyses) {
      Event(attempt.Next(Matrix(analysis.parameters_json)));
    }
    if (keep_weights) Event(attempt.Next(Artifact{kWeightsName, kWeightsHash, 12}));
    ASSERT_EQ(Event(attempt.Next(Finished{.wall_seconds = 9.5})).change->outcome,
              state::Outcome::kSucceeded);
  }
  // Starts at `from` and stores the epochs up to `to`.
  void Train(Attempt& attempt, int from, int to, int correct = 40) {
    ASSERT_EQ(Event(attempt.Next(Started{from, 3, "{}"})).status, EventStored::kStored);
    for (int i = from; i < to; ++i) {
      ASSERT_EQ(Event(attempt.Next(MakeEpoch(i, correct))).status, EventStored::kStored);
    }
  }
  std::string Text(const std::string& sql) {
    SQLite::Statement statement(store_->database().connection(), sql);
    std::string all;
    while (statement.executeStep()) {
      for (int i = 0; i < statement.getColumnCount(); ++i) {
        absl::StrAppend(&all, all.empty() ? "" : " ", statement.getColumn(i).getString());
      }
    }
    return all;
  }
  std::string JobState(std::int64_t id) {
    return Text(absl::StrCat("SELECT state FROM jobs WHERE job_id = ", id));
  }
  std::string SweepState(std::int64_t id) {
    return Text(absl::StrCat("SELECT state FROM sweeps WHERE sweep_id = ", id));
  }

  std::string directory_;
  std::string path_;
  std::string gone_artifact_;  // there is no file with this hash
  std::function<void(std::vector<std::string>)> dropped_callback_;
  EpochStagingOptions staging_;
  std::unique_ptr<Store> store_;
  SliceStored slice_;
  Assignment assignment_;
};

}  // namespace pelab::store
