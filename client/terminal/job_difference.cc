#include "client/terminal/job_difference.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "client/terminal/table.h"
#include "core/base/json_text.h"
#include "core/base/short_hashes.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

using render::Json;
using Flat = std::map<std::string, Json>;

void Flatten(const Json& value, const std::string& prefix, Flat& out) {
  if (!value.is_object()) {
    out[prefix] = value;
    return;
  }
  for (const auto& [name, member] : value.items()) {
    Flatten(member, prefix.empty() ? name : Concat(prefix, ".", name), out);
  }
}

Flat FlatOf(const std::string& json) {
  const Json value = ParseJson<Json>(json);
  Flat flat;
  if (value.is_object()) Flatten(value, "", flat);
  return flat;
}

// The fields compared under "result": the outcome and its cost.
Flat ResultOf(const v1::JobRow& job) {
  Flat all;
  const Json row = results::ToJson(job, "");
  for (const char* name : {"state", "attempts", "epochs_done", "train_correct", "train_total",
                           "train_accuracy", "train_eval_accuracy", "test_correct", "test_total",
                           "test_accuracy", "best_test_accuracy", "wall_seconds", "error"}) {
    all[name] = row.at(name);
  }
  return all;
}

Flat EnvironmentOf(const DiffSide& side) {
  if (!side.attempt) return {};
  Flat all;
  if (side.attempt->has_environment_json()) all = FlatOf(side.attempt->environment_json());
  all["worker"] = side.attempt->worker();
  all["device"] = side.attempt->device();
  return all;
}

Json Differing(const Flat& a, const Flat& b) {
  std::set<std::string> names;
  for (const auto& [name, value] : a) names.insert(name);
  for (const auto& [name, value] : b) names.insert(name);
  Json rows = Json::array();
  for (const std::string& name : names) {
    const auto in_a = a.find(name), in_b = b.find(name);
    const Json of_a = in_a == a.end() ? Json(nullptr) : in_a->second;
    const Json of_b = in_b == b.end() ? Json(nullptr) : in_b->second;
    if (of_a != of_b) rows.push_back({{"field", name}, {"a", of_a}, {"b", of_b}});
  }
  return rows;
}

// Whether two epochs are equal in everything except the job and the seconds.
bool SameEpoch(v1::CurveRow a, v1::CurveRow b) {
  for (v1::CurveRow* row : {&a, &b}) {
    row->clear_job_id();
    row->clear_seconds();
  }
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

Json Curves(const DiffSide& a, const DiffSide& b) {
  const std::size_t both = std::min(a.curve.size(), b.curve.size());
  std::size_t same = 0;
  while (same < both && SameEpoch(a.curve[same], b.curve[same])) ++same;
  return {{"epochs_a", a.curve.size()},
          {"epochs_b", b.curve.size()},
          {"first_difference", same == both ? Json(nullptr) : Json(a.curve[same].epoch())}};
}

std::string Shown(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Section(const std::string& title, const Json& rows, const std::string& a,
                    const std::string& b, const render::Style& style) {
  if (rows.empty()) return Concat(title, ": no difference\n");
  render::Table table(
      {{title}, {a, render::Column::Align::kLeft, true}, {b, render::Column::Align::kLeft, true}});
  ShortHashes hashes;
  for (const Json& row : rows) {
    for (const char* side : {"a", "b"}) hashes.Add(Shown(row.at(side)));
  }
  for (const Json& row : rows) {
    table.AddRow({row.at("field").get<std::string>(), hashes.In(Shown(row.at("a"))),
                  hashes.In(Shown(row.at("b")))});
  }
  return table.Render(style);
}

}  // namespace

render::Json DifferenceOf(const DiffSide& a, const DiffSide& b) {
  return {{"job_a", a.job.job_id()},
          {"job_b", b.job.job_id()},
          {"same_key", a.job.key() == b.job.key()},
          {"spec", Differing(FlatOf(a.spec_json), FlatOf(b.spec_json))},
          {"environment", Differing(EnvironmentOf(a), EnvironmentOf(b))},
          {"result", Differing(ResultOf(a.job), ResultOf(b.job))},
          {"curves", Curves(a, b)}};
}

std::string DifferenceText(const render::Json& difference, const render::Style& style) {
  const std::string a = Concat("job ", Shown(difference.at("job_a")));
  const std::string b = Concat("job ", Shown(difference.at("job_b")));
  std::string text;
  for (const char* section : {"spec", "environment", "result"}) {
    text += Section(section, difference.at(section), a, b, style) + "\n";
  }
  const Json& curves = difference.at("curves");
  text += Concat("curves: ", Shown(curves.at("epochs_a")), " and ", Shown(curves.at("epochs_b")),
                 " epochs; ");
  if (curves.at("first_difference").is_null()) {
    text += "those that both have are equal bit for bit, times aside\n";
  } else {
    text += Concat("first difference at epoch ", Shown(curves.at("first_difference")), "\n");
  }
  return text;
}

}  // namespace pelab::client
