#include "server/http/topics.h"

#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/rows.h"
#include "server/http/lists.h"

namespace pelab::http {
namespace {

using render::Json;

constexpr int kMostSweeps = 100;  // only the newest

std::string Line(const Json& json) {
  std::string text = render::ToJson(json, /*one_line=*/true);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void Add(const std::string& event, const std::string& key, const Json& json, Snapshot& snapshot) {
  snapshot.push_back({event, key, Line(json)});
}
// Adds an item without a row, so that the first message mentions the event even if it has no rows.
void AddEvent(const std::string& event, Snapshot& snapshot) { snapshot.push_back({event, "", ""}); }

absl::StatusOr<Snapshot> ObserveAll(db::Reader& reader, Api& api) {
  Snapshot snapshot;
  v1::ListSweepsRequest request;
  request.mutable_page()->set_limit(kMostSweeps);
  PELAB_ASSIGN_OR_RETURN(const v1::ListSweepsResponse sweeps, reader.ListSweeps(request));
  AddEvent("sweeps", snapshot);
  for (const v1::Sweep& sweep : sweeps.sweeps()) {
    PELAB_ASSIGN_OR_RETURN(const Json row, api.SweepRow(sweep));
    Add("sweeps", Concat(sweep.sweep_id()), row, snapshot);
  }
  PELAB_ASSIGN_OR_RETURN(const Api::RowPage workers, api.WorkerRows({}));
  AddEvent("workers", snapshot);
  for (const Json& worker : workers.rows) {
    Add("workers", worker["worker_id"].get<std::string>(), worker, snapshot);
  }
  return snapshot;
}

absl::StatusOr<Snapshot> ObserveSweep(const std::string& id, db::Reader& reader, Api& api) {
  Snapshot snapshot;
  PELAB_ASSIGN_OR_RETURN(v1::Sweep sweep, reader.GetSweep(id));
  sweep.clear_document();
  PELAB_ASSIGN_OR_RETURN(const Json row, api.SweepRow(std::move(sweep)));
  Add("sweep", "", row, snapshot);
  v1::ListJobsRequest request;
  request.mutable_filter()->set_sweep(id);
  request.mutable_page()->set_limit(db::kMaxPage);
  request.set_specs_apart(true);
  AddEvent("jobs", snapshot);
  std::size_t jobs = 0;
  do {  // the page loads further jobs itself if there are more than kMostJobs
    PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse page, reader.ListJobs(request));
    request.mutable_page()->set_after(page.next());
    jobs += static_cast<std::size_t>(page.jobs_size());
    for (const v1::JobRow& job : page.jobs()) {
      Add("jobs", Concat(job.job_id()), JobJson(job), snapshot);
    }
  } while (!request.page().after().empty() && jobs < kMostJobs);
  return snapshot;
}

absl::Status AddLogEnd(const std::string& id, db::Reader& reader, Snapshot& snapshot) {
  const auto parts = reader.ReadLog(id, 0, 0);
  if (absl::IsNotFound(parts.status())) return absl::OkStatus();  // the job has no attempt yet
  if (!parts.ok()) return parts.status();
  if (parts->empty()) return absl::OkStatus();
  Add("log", "",
      Json{{"attempt", parts->back().attempt()},
           {"end", parts->back().offset() + parts->back().data().size()}},
      snapshot);
  return absl::OkStatus();
}

absl::StatusOr<Snapshot> ObserveJob(const std::string& id, db::Reader& reader, Api& api) {
  Snapshot snapshot;
  v1::ListJobsRequest request;
  request.mutable_filter()->add_jobs(id);
  request.set_specs_apart(true);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, reader.ListJobs(request));
  for (const v1::JobRow& job : jobs.jobs()) Add("job", "", JobJson(job), snapshot);
  v1::JobFilter filter;
  filter.add_jobs(id);
  AddEvent("epochs", snapshot);
  PELAB_RETURN_IF_ERROR(ForEachPage(reader, &db::Reader::ListCurves, filter, [&](const auto& page) {
    for (const v1::CurveRow& row : page.rows()) {
      Add("epochs", Concat(row.epoch()), results::ToJson(row), snapshot);
    }
  }));
  AddEvent("attempts", snapshot);
  for (const v1::JobRow& job : jobs.jobs()) {
    PELAB_ASSIGN_OR_RETURN(const Json attempts, api.AttemptRows(job.job_id()));
    for (const Json& row : attempts) {
      Add("attempts", Concat(row["number"].get<int>()), row, snapshot);
    }
  }
  PELAB_RETURN_IF_ERROR(AddLogEnd(id, reader, snapshot));
  return snapshot;
}

using Rows = std::unordered_map<std::string_view, std::string_view>;  // key -> json

struct Event {
  std::string_view name;
  const Item* begin;
  const Item* end;
};

std::vector<Event> EventsOf(const Snapshot& snapshot) {
  std::vector<Event> events;
  for (const Item& item : snapshot) {
    if (events.empty() || events.back().name != item.event) {
      events.push_back({item.event, &item, &item});
    }
    ++events.back().end;
  }
  return events;
}

// The event's data; empty if nothing changed.
std::string DataBetween(const Event* before, const Event& now) {
  Rows gone;
  if (before != nullptr) {
    for (const Item* item = before->begin; item != before->end; ++item)
      gone[item->key] = item->json;
  }
  std::string changed;
  std::string all;
  for (const Item* item = now.begin; item != now.end; ++item) {
    const auto found = gone.find(item->key);
    const bool same = found != gone.end() && found->second == item->json;
    if (found != gone.end()) gone.erase(found);
    if (item->json.empty()) continue;
    all += Concat(all.empty() ? "" : ",", item->json);
    if (!same) changed += Concat(changed.empty() ? "" : ",", item->json);
  }
  const bool whole = before == nullptr || !gone.empty();
  if (!whole && changed.empty()) return "";
  return Concat("{\"all\":", whole ? "true" : "false", ",\"rows\":[", whole ? all : changed, "]}");
}

}  // namespace

absl::StatusOr<Snapshot> Observe(const Topic& topic, db::Reader& reader, const Sources& sources) {
  Api api(reader, sources);
  switch (topic.kind) {
    case Topic::Kind::kAll:
      return ObserveAll(reader, api);
    case Topic::Kind::kSweep:
      return ObserveSweep(Concat(topic.id), reader, api);
    case Topic::Kind::kJob:
      return ObserveJob(Concat(topic.id), reader, api);
  }
  return absl::InternalError("no such topic");
}

std::string EventsBetween(const Snapshot& before, const Snapshot& now, const std::string& id) {
  const std::vector<Event> old = EventsOf(before);
  std::string text;
  for (const Event& event : EventsOf(now)) {
    const Event* same = nullptr;
    for (const Event& candidate : old) {
      if (candidate.name == event.name) same = &candidate;
    }
    const std::string data = DataBetween(same, event);
    if (data.empty()) continue;
    text += Concat("id: ", id, "\nevent: ", event.name, "\ndata: ", data, "\n\n");
  }
  return text;
}

}  // namespace pelab::http
