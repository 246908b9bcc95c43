#include "client/rows.h"

#include "client/filter.h"

namespace pelab::client {
namespace {

using render::Json;

template <typename T>
Json OrNull(bool has, const T& value) {
  return has ? Json(value) : Json(nullptr);
}

// A column that holds JSON, as JSON; as text where it cannot be read.
Json Embedded(const std::string& text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;
}

}  // namespace

Json ToJson(const v1::JobRow& r) {
  return {{"job_id", r.job_id()},
          {"key", r.key()},
          {"generation", r.generation()},
          {"pe", r.pe()},
          {"pe_label", r.pe_label()},
          {"task", r.task()},
          {"protocol", r.protocol()},
          {"seed", r.seed()},
          {"state", StateName(r.state())},
          {"attempts", r.attempts()},
          {"device", OrNull(r.has_device(), r.device())},
          {"epochs", r.epochs()},
          {"epochs_done", r.epochs_done()},
          {"train_accuracy", OrNull(r.has_train_accuracy(), r.train_accuracy())},
          {"test_accuracy", OrNull(r.has_test_accuracy(), r.test_accuracy())},
          {"best_test_accuracy", OrNull(r.has_best_test_accuracy(), r.best_test_accuracy())},
          {"wall_seconds", OrNull(r.has_wall_seconds(), r.wall_seconds())},
          {"error", OrNull(r.has_error(), r.error())},
          {"train_correct", OrNull(r.has_train_correct(), r.train_correct())},
          {"train_total", OrNull(r.has_train_total(), r.train_total())},
          {"test_correct", OrNull(r.has_test_correct(), r.test_correct())},
          {"test_total", OrNull(r.has_test_total(), r.test_total())},
          {"spec", Embedded(r.spec_json())}};
}

Json ToJson(const v1::CurveRow& r) {
  return {{"job_id", r.job_id()},
          {"epoch", r.epoch()},
          {"train_loss", r.train_loss()},
          {"train_accuracy", r.train_accuracy()},
          {"test_loss", r.test_loss()},
          {"test_accuracy", r.test_accuracy()},
          {"learning_rate", r.learning_rate()},
          {"seconds", r.seconds()},
          {"train_correct", r.train_correct()},
          {"train_total", r.train_total()},
          {"test_correct", r.test_correct()},
          {"test_total", r.test_total()}};
}

Json ToJson(const v1::HeadAblationRow& r) {
  return {{"job_id", r.job_id()},
          {"method", r.method()},
          {"hygiene", r.hygiene()},
          {"split", r.split()},
          {"layer", r.layer()},
          {"head", r.head()},
          {"correct", r.correct()},
          {"total", r.total()},
          {"accuracy", r.accuracy()},
          {"accuracy_drop", r.accuracy_drop()},
          {"intact_correct", r.intact_correct()}};
}

Json ToJson(const v1::AttemptRow& r) {
  return {
      {"attempt_id", r.attempt_id()},
      {"job_id", r.job_id()},
      {"number", r.number()},
      {"worker", r.worker()},
      {"device", r.device()},
      {"start_epoch", OrNull(r.has_start_epoch(), r.start_epoch())},
      {"outcome", r.outcome() == v1::ATTEMPT_OUTCOME_UNSPECIFIED ? Json(nullptr)
                                                                 : Json(OutcomeName(r.outcome()))},
      {"error", OrNull(r.has_error(), r.error())},
      {"started_at_ms", r.started_at_ms()},
      {"ended_at_ms", OrNull(r.has_ended_at_ms(), r.ended_at_ms())},
      {"environment", r.has_environment_json() ? Embedded(r.environment_json()) : Json(nullptr)}};
}

Json ToJson(const v1::WorkerRow& r) {
  return {{"worker_id", r.worker_id()},
          {"host", r.host()},
          {"devices", Embedded(r.devices_json())},
          {"slots", r.slots()},
          {"busy_slots", r.busy_slots()},
          {"state", r.state()},
          {"last_seen_at_ms", r.last_seen_at_ms()},
          {"version", r.version()}};
}

Json ToJson(const v1::JobCounts& c) {
  return {{"total", c.total()},
          {"new", c.new_jobs()},
          {"stored", c.stored()},
          {"in_flight", c.in_flight()},
          {"failed_earlier", c.failed_earlier()}};
}

Json ToJson(const v1::Sweep& s) {
  return {
      {"sweep_id", s.sweep_id()},
      {"name", s.name()},
      {"protocol", s.protocol()},
      {"state", StateName(s.state())},
      {"priority", s.priority()},
      {"file_name", s.file_name()},
      {"created_at_ms", s.created_at_ms()},
      {"cells", s.cells()},
      {"counts", ToJson(s.counts())},
      {"queued", s.jobs().queued()},
      {"assigned", s.jobs().assigned()},
      {"running", s.jobs().running()},
      {"succeeded", s.jobs().succeeded()},
      {"failed", s.jobs().failed()},
      {"cancelled", s.jobs().cancelled()},
      {"epochs_total", s.epochs_total()},
      {"epochs_done", s.epochs_done()},
      {"waiting_reason", s.waiting_reason().empty() ? Json(nullptr) : Json(s.waiting_reason())}};
}

const std::vector<std::string> kJobColumns = {"job_id",        "key",
                                              "generation",    "pe",
                                              "pe_label",      "task",
                                              "protocol",      "seed",
                                              "state",         "attempts",
                                              "device",        "epochs",
                                              "epochs_done",   "train_accuracy",
                                              "test_accuracy", "best_test_accuracy",
                                              "wall_seconds",  "error",
                                              "train_correct", "train_total",
                                              "test_correct",  "test_total",
                                              "spec"};
const std::vector<std::string> kCurveColumns = {
    "job_id",        "epoch",   "train_loss",    "train_accuracy", "test_loss",    "test_accuracy",
    "learning_rate", "seconds", "train_correct", "train_total",    "test_correct", "test_total"};
const std::vector<std::string> kHeadAblationColumns = {
    "job_id",  "method", "hygiene",  "split",         "layer",         "head",
    "correct", "total",  "accuracy", "accuracy_drop", "intact_correct"};
const std::vector<std::string> kWorkerColumns = {
    "worker_id", "host", "devices", "slots", "busy_slots", "state", "last_seen_at_ms", "version"};
const std::vector<std::string> kSweepColumns = {
    "sweep_id",      "name",      "protocol",     "state",       "priority",      "file_name",
    "created_at_ms", "cells",     "queued",       "assigned",    "running",       "succeeded",
    "failed",        "cancelled", "epochs_total", "epochs_done", "waiting_reason"};

}  // namespace pelab::client
