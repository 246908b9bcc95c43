// Short ways to write down what a worker reports.
#pragma once

#include <google/protobuf/text_format.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/event/enums.h"
#include "server/store/writes.h"

namespace pelab {

// A message from Protobuf's text format.
template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) std::abort();
  return message;
}

// The body of an event, from the message of its kind.
struct EventBody {
  EventBody(v1::Event body) : event(std::move(body)) {}  // NOLINT: implicit, as the others
  EventBody(v1::Epoch epoch) { *event.mutable_epoch() = std::move(epoch); }
  EventBody(v1::HeadAblation matrix) { *event.mutable_head_ablation() = std::move(matrix); }
  EventBody(v1::AnalysisResult result) { *event.mutable_analysis() = std::move(result); }

  v1::Event event;
};

inline v1::Event StartedEvent(int start_epoch, int epochs, const std::string& environment = "{}",
                              const std::optional<store::Execution>& execution = std::nullopt) {
  v1::Event event;
  v1::Started& started = *event.mutable_started();
  started.set_start_epoch(start_epoch);
  started.set_epochs(epochs);
  started.set_environment_json(environment);
  if (execution) {
    started.mutable_execution()->set_threads(execution->threads);
    started.mutable_execution()->set_micro_batch(execution->micro_batch);
    started.mutable_execution()->set_packing(execution->packing);
  }
  return event;
}

// The smallest epoch that can be: one example, which is wrong.
inline v1::Epoch OneWrong(int epoch = 0) {
  v1::Epoch made;
  made.set_epoch(epoch);
  made.set_train_total(1);
  made.set_test_total(1);
  return made;
}

inline v1::AnalysisResult ResultOf(const std::string& analysis, const std::string& result_json,
                                   double seconds = 0, int version = 1) {
  v1::AnalysisResult result;
  result.set_name(analysis);
  result.set_version(version);
  result.set_parameters_json("{}");
  result.set_result_json(result_json);
  result.set_seconds(seconds);
  return result;
}

inline v1::Event ArtifactEvent(const std::string& name, const std::string& sha256,
                               std::uint64_t bytes) {
  v1::Event event;
  event.mutable_artifact()->set_name(name);
  event.mutable_artifact()->set_sha256(sha256);
  event.mutable_artifact()->set_bytes(bytes);
  return event;
}

inline v1::Event CheckpointEvent(int epoch, const std::string& sha256, std::uint64_t bytes) {
  v1::Event event;
  event.mutable_checkpoint()->set_epoch(epoch);
  event.mutable_checkpoint()->set_sha256(sha256);
  event.mutable_checkpoint()->set_bytes(bytes);
  return event;
}

inline v1::Event EndEvent(v1::AttemptOutcome outcome,
                          state::ErrorKind error_kind = state::ErrorKind::kNone,
                          const std::string& error = "", double wall_seconds = 0) {
  v1::Event event;
  event.mutable_finished()->set_outcome(outcome);
  event.mutable_finished()->set_error_kind(event::ToProto(error_kind));
  event.mutable_finished()->set_error(error);
  event.mutable_finished()->set_wall_seconds(wall_seconds);
  return event;
}
inline v1::Event SucceededEvent(double wall_seconds = 0, const std::string& warning = "") {
  v1::Event event = EndEvent(v1::ATTEMPT_OUTCOME_SUCCEEDED, {}, "", wall_seconds);
  event.mutable_finished()->set_warning(warning);
  return event;
}
inline v1::Event FailedEvent(state::ErrorKind kind, const std::string& error) {
  return EndEvent(v1::ATTEMPT_OUTCOME_FAILED, kind, error);
}

// The write that stores `body` as an event of an attempt.
inline store::AttemptEvent EventWrite(std::int64_t attempt_id, std::uint64_t token,
                                      std::uint64_t sequence, EventBody body, std::int64_t now = 0,
                                      double jitter = 0.75,
                                      std::shared_ptr<const std::string> worker = nullptr) {
  body.event.set_attempt_id(attempt_id);
  body.event.set_token(token);
  body.event.set_sequence(sequence);
  return {.event = std::make_shared<const v1::Event>(std::move(body.event)),
          .worker = std::move(worker),
          .now = now,
          .jitter = jitter};
}

}  // namespace pelab
