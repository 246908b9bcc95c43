#include "core/results/rows.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/strings/ascii.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/names.h"
#include "pelab/v1/admin.pb.h"

namespace pelab::results {
namespace {

using google::protobuf::FieldDescriptor;
using render::Json;

constexpr std::string_view kJsonText = "_json";

std::string NameOf(const FieldDescriptor& field) {
  const std::string& name = field.name();
  return name.ends_with(kJsonText) ? name.substr(0, name.size() - kJsonText.size()) : name;
}

// "running" for JOB_STATE_RUNNING; null for the value 0.
Json EnumJson(const google::protobuf::EnumValueDescriptor& value) {
  constexpr std::string_view kZero = "UNSPECIFIED";
  if (value.number() == 0) return nullptr;
  const std::size_t prefix = value.type()->value(0)->name().size() - kZero.size();
  return absl::AsciiStrToLower(value.name().substr(prefix));
}

Json ValueOf(const google::protobuf::Message& row, const FieldDescriptor* field) {
  const google::protobuf::Reflection& get = *row.GetReflection();
  if (field->has_presence() && !get.HasField(row, field)) return nullptr;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get.GetInt32(row, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return get.GetInt64(row, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get.GetUInt64(row, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return get.GetDouble(row, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return get.GetBool(row, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumJson(*get.GetEnum(row, field));
    default: {
      std::string text = get.GetString(row, field);
      return field->name().ends_with(kJsonText) ? ParseJsonOrNull<Json>(text)
                                                : Json(std::move(text));
    }
  }
}

// The names of the row's fields, without the last `but` of them.
std::vector<std::string> Columns(const google::protobuf::Descriptor* row, int but = 0) {
  std::vector<std::string> names;
  for (int i = 0; i + but < row->field_count(); ++i) names.push_back(NameOf(*row->field(i)));
  return names;
}

// The columns of a kind of row, which the pointer names.
template <typename Row>
std::vector<std::string> CsvColumns(const Row*) {
  return Columns(Row::descriptor());
}

// The result of an analysis may be long, so it is the last column.
std::vector<std::string> CsvColumns(const v1::AnalysisRow*) {
  std::vector<std::string> names = Columns(v1::AnalysisRow::descriptor());
  const auto result = std::find(names.begin(), names.end(), "result");
  std::rotate(result, result + 1, names.end());
  return names;
}

// Without the last three, which a coordinator adds.
std::vector<std::string> CsvColumns(const v1::WorkerRow*) {
  return Columns(v1::WorkerRow::descriptor(), /*but=*/3);
}

std::vector<std::string> CsvColumns(const v1::Sweep*) {
  return {"sweep_id",    "name",           "protocol", "state",     "priority",
          "file_name",   "created_at_ms",  "cells",    "queued",    "assigned",
          "running",     "succeeded",      "failed",   "cancelled", "epochs_total",
          "epochs_done", "waiting_reason", "paused",   "diverged",  "note"};
}

// Visits the columns in the order of ColumnsOf<v1::CurveRow>(), many times faster than by their
// descriptors.
template <typename Integer, typename Real, typename Absent>
void VisitCurve(const v1::CurveRow& r, Integer integer, Real real, Absent absent) {
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
  if (!r.has_train_eval_total()) {
    for (int column = 0; column < 3; ++column) absent();
    return;
  }
  real(r.train_eval_accuracy());
  integer(r.train_eval_correct());
  integer(r.train_eval_total());
}

}  // namespace

Json ToJson(const google::protobuf::Message& row) {
  Json json = Json::object();
  auto& members = json.get_ref<Json::object_t&>();
  const google::protobuf::Descriptor& fields = *row.GetDescriptor();
  members.reserve(static_cast<std::size_t>(fields.field_count()));
  for (int i = 0; i < fields.field_count(); ++i) {
    members.emplace_back(NameOf(*fields.field(i)), ValueOf(row, fields.field(i)));
  }
  return json;
}

namespace {

Json JobJson(const v1::JobRow& row, Json spec) {
  Json json = ToJson(row);
  json["spec"] = std::move(spec);
  if (row.configuration_id() <= 0) json["configuration_id"] = nullptr;  // made up by JobList
  return json;
}

}  // namespace

Json ToJson(const v1::JobRow& row, const std::string& spec_json) {
  return JobJson(row, ParseJsonOrNull<Json>(spec_json));
}

void AppendJobCsv(const v1::JobRow& row, const std::string& spec_json, std::string& out) {
  render::AppendCsv(ColumnsOf<v1::JobRow>(), JobJson(row, spec_json), out);
}

Json ToJsonArray(const JobList& jobs) {
  Json array = Json::array();
  for (const v1::JobRow& row : jobs) array.push_back(ToJson(row, jobs.SpecOf(row)));
  return array;
}

Json ToJson(const v1::WorkerRow& row) {
  Json json = ToJson(static_cast<const google::protobuf::Message&>(row));
  for (const char* added : {"silent_ms", "lease_left_ms", "time_left_ms"}) json.erase(added);
  return json;
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
          {"note", s.note()},
          {"trace_id", s.trace_id()}};
}

template <typename Row>
const std::vector<std::string>& ColumnsOf() {
  static const auto& columns =
      *new std::vector<std::string>(CsvColumns(static_cast<Row*>(nullptr)));
  return columns;
}
template const std::vector<std::string>& ColumnsOf<v1::JobRow>();
template const std::vector<std::string>& ColumnsOf<v1::CurveRow>();
template const std::vector<std::string>& ColumnsOf<v1::HeadAblationRow>();
template const std::vector<std::string>& ColumnsOf<v1::DepositRow>();
template const std::vector<std::string>& ColumnsOf<v1::AnalysisRow>();
template const std::vector<std::string>& ColumnsOf<v1::ArtifactRow>();
template const std::vector<std::string>& ColumnsOf<v1::WorkerRow>();
template const std::vector<std::string>& ColumnsOf<v1::AuditRow>();
template const std::vector<std::string>& ColumnsOf<v1::Sweep>();

void AppendCsv(const v1::CurveRow& row, std::string& out) {
  const auto put = [&out](auto value) {
    render::AppendShortest(value, out);
    out += ',';
  };
  VisitCurve(row, put, put, [&out] { out += ','; });
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
    std::vector<std::string> all = ColumnsOf<v1::CurveRow>();
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
      [&](double value) { put([&] { render::AppendJson(value, out); }); },
      [&] { put([&] { out += "null"; }); });
  out.resize(out.size() - layout.comma.size());
  out += layout.close;
}

constexpr CurveLayout kIndented = {"    {\n", "      ", ": ", ",\n", "\n    }"};
constexpr CurveLayout kOneLine = {"{", "", ":", ",", "}\n"};

}  // namespace

void AppendJson(const v1::CurveRow& row, std::string& out) { AppendObject<kIndented>(row, out); }
void AppendJsonLine(const v1::CurveRow& row, std::string& out) { AppendObject<kOneLine>(row, out); }

}  // namespace pelab::results
