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
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/store/database.h"
#include "server/store/store.h"
#include "tests/support/events.h"

namespace pelab::store {

inline constexpr char kAnalyses[] =
    R"([{"name":"head_ablation","version":2,"parameters_json":"{\"data\":\"test\",)"
    R"(\"hygiene\":\"raw\",\"method\":\"zero\"}"}])";
inline constexpr char kParameters[] = R"({"data":"test","hygiene":"raw","method":"zero"})";

inline const std::string kWeightsHash = std::string(64, 'a');
inline constexpr std::uint64_t kWeightsBytes = 12;
inline constexpr std::uint64_t kOtherBytes = 100;  // of every other file

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

inline v1::Epoch MakeEpoch(int epoch, int correct = 40) {
  v1::Epoch made;
  made.set_epoch(epoch);
  made.set_train_loss(1.0 / (3 + epoch));
  made.set_train_correct(correct);
  made.set_train_total(99);
  made.set_test_loss(1.0 / (7 + epoch));
  made.set_test_correct(correct + epoch);
  made.set_test_total(97);
  made.set_learning_rate(0.001);
  made.set_seconds(2.0);
  return made;
}

// A matrix of 2 x 2 heads on 97 examples, 42 of them right when intact. The last entry does not
// exist.
inline v1::HeadAblation Matrix(const std::string& parameters = kParameters) {
  auto matrix = FromText<v1::HeadAblation>(R"(
      version: 2 layers: 2 heads: 2 total: 97 intact_correct: 42 intact_nll: 1.25 seconds: 0.5
      correct: [10, 42, 40, 0]
      lost: [35, 2, 3, 0]
      gained: [3, 2, 1, 0]
      nll: [2.5, 1.25, 1.5, 0]
      nll_standard_error: [0.125, 0, 0, 0]
      missing: [false, false, false, true])");
  matrix.set_parameters_json(parameters);
  matrix.set_chance(1.0 / 70);
  return matrix;
}

// Numbers the events of one attempt.
struct Attempt {
  std::int64_t id = 0;
  std::uint64_t token = 0;
  std::uint64_t sequence = 0;
  AttemptEvent Next(EventBody body) {
    return EventWrite(id, token, ++sequence, std::move(body), 5000, 0.5);
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
    options.artifact_bytes = [this](const std::string& sha256) -> std::optional<std::uint64_t> {
      if (sha256 == gone_artifact_) return std::nullopt;
      return sha256 == kWeightsHash ? kWeightsBytes : kOtherBytes;
    };
    options.dropped = dropped_callback_;
    options.ended = [this](const std::vector<std::int64_t>& sweep_ids) {
      ended_sweeps_.insert(ended_sweeps_.end(), sweep_ids.begin(), sweep_ids.end());
    };
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
                                                    .resources_json = resources_json_,
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
    EXPECT_TRUE(created.assignment);
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
    if (keep_weights) Event(attempt.Next(ArtifactEvent(kWeightsName, kWeightsHash, kWeightsBytes)));
    ASSERT_EQ(Event(attempt.Next(SucceededEvent(9.5))).change->outcome, state::Outcome::kSucceeded);
  }
  // Starts at `from` and stores the epochs up to `to`.
  void Train(Attempt& attempt, int from, int to, int correct = 40) {
    ASSERT_EQ(Event(attempt.Next(StartedEvent(from, 3))).status, EventStored::kStored);
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
  std::string gone_artifact_;          // there is no file with this hash
  std::string resources_json_ = "{}";  // of sweeps that are submitted
  std::function<void(std::vector<std::string>)> dropped_callback_;
  std::vector<std::int64_t> ended_sweeps_;  // what StoreOptions::ended was told
  EpochStagingOptions staging_;
  std::unique_ptr<Store> store_;
  SliceStored slice_;
  Assignment assignment_;
};

}  // namespace pelab::store
