#include "core/results/rows.h"

#include <cstdint>
#include <string_view>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/names.h"

namespace pelab::results {
namespace {

using render::Json;

template <typename T>
Json OrNull(bool has, const T& value) {
  return has ? Json(value) : Json(nullptr);
}

// Visits the columns in the order of kCurveColumns.
template <typename Integer, typename Real>
void VisitCurve(const v1::CurveRow& r, Integer integer, Real real) {
  integer(r.job_id());
  integer(std::int64_t{r.epoch()});
  real(r.train_loss());
  real(r.train_accuracy());
  real(r.test_loss());
  real(r.test_accuracy());
  real(r.learning_rate());
  real(r.seconds());
  integer(r.train_correct());
  integer(r.train_total());
  integer(r.test_correct());
  integer(r.test_total());
}

// A column that contains JSON text, as a JSON value.
Json Embedded(const std::string& text) { return ParseJsonOrNull<Json>(text); }

}  // namespace

Json ToJson(const v1::JobRow& r, const std::string& spec_json) {
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
          {"trained", r.trained()},
          {"spec", Embedded(spec_json)},
          {"configuration_id", OrNull(r.configuration_id() > 0, r.configuration_id())},
          {"train_loss", OrNull(r.has_train_loss(), r.train_loss())},
          {"test_loss", OrNull(r.has_test_loss(), r.test_loss())},
          {"diverged", r.diverged()},
          {"warning", OrNull(r.has_warning(), r.warning())}};
}

Json ToJsonArray(const JobList& jobs) {
  Json array = Json::array();
  for (const v1::JobRow& row : jobs) array.push_back(ToJson(row, jobs.SpecOf(row)));
  return array;
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
          {"correct", OrNull(r.has_correct(), r.correct())},
          {"total", r.total()},
          {"accuracy", OrNull(r.has_accuracy(), r.accuracy())},
          {"accuracy_drop", OrNull(r.has_accuracy_drop(), r.accuracy_drop())},
          {"intact_correct", r.intact_correct()},
          {"target", r.target()},
          {"lost", OrNull(r.has_lost(), r.lost())},
          {"gained", OrNull(r.has_gained(), r.gained())},
          {"drop_standard_error", OrNull(r.has_drop_standard_error(), r.drop_standard_error())},
          {"normalised_drop", OrNull(r.has_normalised_drop(), r.normalised_drop())},
          {"nll", OrNull(r.has_nll(), r.nll())},
          {"nll_drop", OrNull(r.has_nll_drop(), r.nll_drop())},
          {"nll_drop_standard_error",
           OrNull(r.has_nll_drop_standard_error(), r.nll_drop_standard_error())},
          {"chance", OrNull(r.has_chance(), r.chance())},
          {"analysis_id", r.analysis_id()},
          {"max_examples", OrNull(r.has_max_examples(), r.max_examples())}};
}

Json ToJson(const v1::DepositRow& r) {
  return {{"job_id", r.job_id()},
          {"method", r.method()},
          {"hygiene", r.hygiene()},
          {"split", r.split()},
          {"target", r.target()},
          {"layer", OrNull(r.has_layer(), r.layer())},
          {"max_drop", OrNull(r.has_max_drop(), r.max_drop())},
          {"top_share", OrNull(r.has_top_share(), r.top_share())},
          {"top_ratio", OrNull(r.has_top_ratio(), r.top_ratio())},
          {"gini", OrNull(r.has_gini(), r.gini())},
          {"effective_heads", OrNull(r.has_effective_heads(), r.effective_heads())},
          {"top_layer", OrNull(r.has_top_layer(), r.top_layer())},
          {"top_head", OrNull(r.has_top_head(), r.top_head())},
          {"deposit", OrNull(r.has_deposit(), r.deposit())},
          {"deposits", OrNull(r.has_deposits(), r.deposits())},
          {"analysis_id", r.analysis_id()}};
}

Json ToJson(const v1::AnalysisRow& r) {
  return {{"job_id", r.job_id()},
          {"name", r.name()},
          {"version", r.version()},
          {"parameters", Embedded(r.parameters_json())},
          {"total", OrNull(r.has_total(), r.total())},
          {"intact_correct", OrNull(r.has_intact_correct(), r.intact_correct())},
          {"seconds", OrNull(r.has_seconds(), r.seconds())},
          {"result", r.has_result_json() ? Embedded(r.result_json()) : Json(nullptr)},
          {"created_at_ms", r.created_at_ms()},
          {"analysis_id", r.analysis_id()}};
}

Json ToJson(const v1::ArtifactRow& r) {
  return {{"job_id", r.job_id()}, {"name", r.name()}, {"sha256", r.sha256()}, {"bytes", r.bytes()}};
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
          {"version", r.version()},
          {"drain", OrNull(r.has_drain(), r.drain())},
          {"name", r.name()}};
}

Json ToJson(const v1::JobCounts& c) {
  return {{"total", c.total()},
          {"new", c.new_jobs()},
          {"stored", c.stored()},
          {"in_flight", c.in_flight()},
          {"failed_earlier", c.failed_earlier()},
          {"analysis_jobs", c.analysis_jobs()},
          {"analysis_impossible", c.analysis_impossible()}};
}

Json ToJson(const v1::Sweep& s) {
  return {{"sweep_id", s.sweep_id()},
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
          {"waiting_reason", s.waiting_reason().empty() ? Json(nullptr) : Json(s.waiting_reason())},
          {"paused", s.paused()},
          {"diverged", s.diverged()},
          {"extensions", std::vector<std::string>(s.extensions().begin(), s.extensions().end())},
          {"note", s.note()}};
}

const std::vector<std::string> kJobColumns = {"job_id",
                                              "key",
                                              "generation",
                                              "pe",
                                              "pe_label",
                                              "task",
                                              "protocol",
                                              "seed",
                                              "state",
                                              "attempts",
                                              "device",
                                              "epochs",
                                              "epochs_done",
                                              "train_accuracy",
                                              "test_accuracy",
                                              "best_test_accuracy",
                                              "wall_seconds",
                                              "error",
                                              "train_correct",
                                              "train_total",
                                              "test_correct",
                                              "test_total",
                                              "trained",
                                              "spec",
                                              "configuration_id",
                                              "train_loss",
                                              "test_loss",
                                              "diverged",
                                              "warning"};
const std::vector<std::string> kCurveColumns = {
    "job_id",        "epoch",   "train_loss",    "train_accuracy", "test_loss",    "test_accuracy",
    "learning_rate", "seconds", "train_correct", "train_total",    "test_correct", "test_total"};
const std::vector<std::string> kHeadAblationColumns = {"job_id",
                                                       "method",
                                                       "hygiene",
                                                       "split",
                                                       "layer",
                                                       "head",
                                                       "correct",
                                                       "total",
                                                       "accuracy",
                                                       "accuracy_drop",
                                                       "intact_correct",
                                                       "target",
                                                       "lost",
                                                       "gained",
                                                       "drop_standard_error",
                                                       "normalised_drop",
                                                       "nll",
                                                       "nll_drop",
                                                       "nll_drop_standard_error",
                                                       "chance",
                                                       "analysis_id",
                                                       "max_examples"};
const std::vector<std::string> kDepositColumns = {
    "job_id",   "method",    "hygiene",   "split",      "target",          "layer",
    "max_drop", "top_share", "top_ratio", "gini",       "effective_heads", "top_layer",
    "top_head", "deposit",   "deposits",  "analysis_id"};
const std::vector<std::string> kAnalysisColumns = {
    "job_id",         "name",    "version",       "parameters",  "total",
    "intact_correct", "seconds", "created_at_ms", "analysis_id", "result"};
const std::vector<std::string> kArtifactColumns = {"job_id", "name", "sha256", "bytes"};
const std::vector<std::string> kWorkerColumns = {
    "worker_id",       "host",    "devices", "slots", "busy_slots", "state",
    "last_seen_at_ms", "version", "drain",   "name"};
const std::vector<std::string> kSweepColumns = {
    "sweep_id",    "name",           "protocol", "state",     "priority",
    "file_name",   "created_at_ms",  "cells",    "queued",    "assigned",
    "running",     "succeeded",      "failed",   "cancelled", "epochs_total",
    "epochs_done", "waiting_reason", "paused",   "diverged",  "note"};

void AppendCsv(const v1::CurveRow& row, std::string& out) {
  const auto put = [&out](auto value) {
    render::AppendShortest(value, out);
    out += ',';
  };
  VisitCurve(row, put, put);
  out.back() = '\r';
  out += '\n';
}

namespace {

struct CurveLayout {
  std::string_view open;
  std::string_view indent;
  std::string_view colon;
  std::string_view comma;
  std::string_view close;
};

template <const CurveLayout& layout>
void AppendObject(const v1::CurveRow& row, std::string& out) {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all = kCurveColumns;
    for (std::string& name : all) name = Concat(layout.indent, "\"", name, "\"", layout.colon);
    return all;
  }());
  out += layout.open;
  const std::string* name = names.data();
  const auto put = [&](auto append) {
    out += *name++;
    append();
    out += layout.comma;
  };
  VisitCurve(
      row, [&](std::int64_t value) { put([&] { render::AppendShortest(value, out); }); },
      [&](double value) { put([&] { render::AppendJson(value, out); }); });
  out.resize(out.size() - layout.comma.size());
  out += layout.close;
}

constexpr CurveLayout kIndented = {"    {\n", "      ", ": ", ",\n", "\n    }"};
constexpr CurveLayout kOneLine = {"{", "", ":", ",", "}\n"};

}  // namespace

void AppendJson(const v1::CurveRow& row, std::string& out) { AppendObject<kIndented>(row, out); }
void AppendJsonLine(const v1::CurveRow& row, std::string& out) { AppendObject<kOneLine>(row, out); }

}  // namespace pelab::results
