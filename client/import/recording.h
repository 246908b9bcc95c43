// The lines of pelab-trainer about one job, from one call or several.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/db/import/import_reader.h"
#include "core/event/check.h"
#include "core/event/job_facts.h"
#include "core/event/trainer_line.h"
#include "core/experiment/canonical_json.h"

namespace pelab::client {

// Not thread-safe.
class Recording {
 public:
  // `folder` is the trainer's --workdir, with the files of its `analysis` events.
  Recording(experiment::JobDocument document, std::string folder);

  // Takes the next line. INVALID_ARGUMENT if it cannot be, or cannot follow the earlier ones. A
  // later call of the trainer replaces the epochs from its start on.
  absl::Status Add(std::string_view line);

  // Whether the line begins a call of the trainer, or says that one begins or has returned.
  static bool ComesBetweenCalls(std::string_view line);

  // Whether the last call of the trainer has trained the job to its end.
  bool finished() const { return !calls_.empty() && calls_.back().done.has_value(); }
  const std::vector<v1::Epoch>& epochs() const { return epochs_; }
  const std::string& key() const { return key_; }
  // The weights, relative to the folder; "" if none were kept.
  std::string weights() const { return finished() ? calls_.back().done->weights_file : ""; }

  // The job, which must be finished. `written_at_ms` is when the lines were last written: the end
  // of a last call that does not say when it returned.
  db::ExportedJob Export(std::int64_t written_at_ms) const;

 private:
  // One start of the trainer.
  struct Call {
    std::string host = "unknown";
    std::optional<std::int64_t> started_at_ms;
    std::optional<std::int64_t> ended_at_ms;
    v1::Started started;
    double seconds = 0;  // of its epochs and analyses
    std::optional<event::DoneLine> done;
    std::optional<event::ErrorLine> error;
  };
  struct Analysis {
    std::size_t call = 0;
    v1::ImportedAnalysis value;
  };
  struct Times {
    std::int64_t started_at_ms = 0;
    std::int64_t ended_at_ms = 0;
  };

  absl::Status AddTime(const std::string& name, const nlohmann::json& object);
  absl::Status AddFact(const v1::Event& event);
  absl::Status Begin(const v1::Started& started);
  absl::Status AddEpoch(const v1::Epoch& epoch);
  void AddAnalysis(const v1::Event& event);
  absl::Status AddDone(event::DoneLine done);
  std::vector<Times> TimesOfCalls(std::int64_t written_at_ms) const;
  v1::ImportedAttempt AttemptOf(const Call& call, const Times& times) const;

  const experiment::JobDocument document_;
  const std::string folder_;
  const std::string spec_json_;
  const std::string key_;
  const std::optional<event::JobFacts> facts_;
  Call coming_;  // the call whose hello has not come yet
  std::vector<Call> calls_;
  std::vector<v1::Epoch> epochs_;
  std::map<event::AnalysisId, Analysis> analyses_;
};

}  // namespace pelab::client
