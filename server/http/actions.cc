#include "server/http/actions.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/results/names.h"
#include "core/rpc/status.h"

namespace pelab::http {
namespace {

using render::Json;
using Stub = v1::Sweeps::StubInterface;
using Answer = absl::StatusOr<Json>;

constexpr absl::Duration kCallTime = absl::Seconds(30);

// The members of a request's body, with errors that name the member.
class Members {
 public:
  explicit Members(const Json& body) : body_(body) {}

  absl::StatusOr<std::string> Text(const std::string& name) const {
    const auto found = body_.find(name);
    if (found == body_.end()) return Missing(name, "a text");
    if (!found->is_string()) return Wrong(name, *found, "a text");
    return found->get<std::string>();
  }
  absl::StatusOr<std::int32_t> Integer(const std::string& name) const {
    const auto found = body_.find(name);
    if (found == body_.end()) return Missing(name, "a whole number");
    const std::optional<std::int32_t> number = IntegerOf<std::int32_t>(*found);
    if (!number) return Wrong(name, *found, "a whole number of 32 bits");
    return *number;
  }
  // Returns `otherwise` if the member is missing.
  absl::StatusOr<std::string> TextOr(const std::string& name, const std::string& otherwise) const {
    return body_.contains(name) ? Text(name) : absl::StatusOr<std::string>(otherwise);
  }
  absl::StatusOr<bool> Flag(const std::string& name) const {
    const auto found = body_.find(name);
    if (found == body_.end()) return false;
    if (!found->is_boolean()) return Wrong(name, *found, "true or false");
    return found->get<bool>();
  }

 private:
  static absl::Status Missing(const std::string& name, const std::string& allowed) {
    return absl::InvalidArgumentError(
        Concat("the body has no \"", name, "\"; it must be ", allowed));
  }
  static absl::Status Wrong(const std::string& name, const Json& value,
                            const std::string& allowed) {
    std::string shown = render::ToJson(value, /*one_line=*/true);
    shown.pop_back();  // the newline
    return absl::InvalidArgumentError(
        Concat("\"", name, "\" is ", Shorten(shown, 80), "; it must be ", allowed));
  }

  const Json& body_;
};

// Makes one call, with a deadline.
template <typename Request, typename Response>
absl::StatusOr<Response> Call(Stub& sweeps,
                              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                              const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTime));
  Response response;
  const grpc::Status status = (sweeps.*method)(&context, request, &response);
  if (!status.ok()) return rpc::FromGrpc(status);
  return response;
}

Json ToJson(const v1::SweepControl& control) {
  return {{"sweep_id", control.sweep_id()},
          {"name", control.name()},
          {"state", results::StateName(control.state())},
          {"paused", control.paused()},
          {"priority", control.priority()},
          {"changed", control.changed()}};
}
Json ToJson(const v1::CancelResponse& response) {
  return {{"claims_withdrawn", response.claims_withdrawn()},
          {"jobs_cancelled", response.jobs_cancelled()},
          {"more", response.more()}};
}
Json ToJson(const v1::RetryResponse& response) {
  return {{"queued", response.queued()},
          {"nothing", response.nothing()},
          {"next", response.next().empty() ? Json(nullptr) : Json(response.next())}};
}
Json ToJson(const v1::ExtendResponse& response) {
  return {{"sweep_id", response.sweep_id()},
          {"name", response.name()},
          {"new_seeds", response.new_seeds()},
          {"cells", response.cells()}};
}

template <typename Request, typename Response>
Answer CallAsJson(Stub& sweeps,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request) {
  PELAB_ASSIGN_OR_RETURN(const Response response, Call(sweeps, method, request));
  return ToJson(response);
}

Answer Pause(const std::string& id, const Members&, Stub& sweeps) {
  v1::PauseRequest request;
  request.mutable_sweep()->set_sweep(id);
  return CallAsJson(sweeps, &Stub::Pause, request);
}
Answer Resume(const std::string& id, const Members&, Stub& sweeps) {
  v1::ResumeRequest request;
  request.mutable_sweep()->set_sweep(id);
  return CallAsJson(sweeps, &Stub::Resume, request);
}
Answer Priority(const std::string& id, const Members& body, Stub& sweeps) {
  v1::SetPriorityRequest request;
  request.mutable_sweep()->set_sweep(id);
  PELAB_ASSIGN_OR_RETURN(const std::int32_t priority, body.Integer("priority"));
  request.set_priority(priority);
  return CallAsJson(sweeps, &Stub::SetPriority, request);
}
Answer Note(const std::string& id, const Members& body, Stub& sweeps) {
  v1::SetNoteRequest request;
  request.mutable_sweep()->set_sweep(id);
  PELAB_ASSIGN_OR_RETURN(*request.mutable_note(), body.Text("note"));
  return CallAsJson(sweeps, &Stub::SetNote, request);
}
Answer Extend(const std::string& id, const Members& body, Stub& sweeps) {
  v1::ExtendRequest request;
  request.mutable_sweep()->set_sweep(id);
  PELAB_ASSIGN_OR_RETURN(*request.mutable_seeds(), body.Text("seeds"));
  return CallAsJson(sweeps, &Stub::Extend, request);
}
Answer CancelSweep(const std::string& id, const Members&, Stub& sweeps) {
  v1::CancelRequest request;
  request.mutable_sweep()->set_sweep(id);
  return CallAsJson(sweeps, &Stub::Cancel, request);
}
Answer CancelJob(const std::string& id, const Members&, Stub& sweeps) {
  v1::CancelRequest request;
  request.set_job(id);
  return CallAsJson(sweeps, &Stub::Cancel, request);
}
Answer RetrySweep(const std::string& id, const Members& body, Stub& sweeps) {
  v1::RetryRequest request;
  request.mutable_sweep()->set_sweep(id);
  PELAB_ASSIGN_OR_RETURN(*request.mutable_after(), body.TextOr("after", ""));
  return CallAsJson(sweeps, &Stub::Retry, request);
}
Answer RetryJob(const std::string& id, const Members& body, Stub& sweeps) {
  v1::RetryRequest request;
  request.set_job(id);
  PELAB_ASSIGN_OR_RETURN(const bool failed_only, body.Flag("failed_only"));
  request.set_failed_only(failed_only);
  return CallAsJson(sweeps, &Stub::Retry, request);
}

struct Action {
  std::vector<std::string> members;  // the members that its body may have
  Answer (*act)(const std::string& id, const Members& body, Stub& sweeps);
};

const Action* Find(const std::vector<std::string>& path) {
  static const auto& actions = *new std::map<std::pair<std::string, std::string>, Action>{
      {{"sweeps", "pause"}, {{}, Pause}},
      {{"sweeps", "resume"}, {{}, Resume}},
      {{"sweeps", "cancel"}, {{}, CancelSweep}},
      {{"sweeps", "retry"}, {{"after"}, RetrySweep}},
      {{"sweeps", "extend"}, {{"seeds"}, Extend}},
      {{"sweeps", "priority"}, {{"priority"}, Priority}},
      {{"sweeps", "note"}, {{"note"}, Note}},
      {{"jobs", "cancel"}, {{}, CancelJob}},
      {{"jobs", "retry"}, {{"failed_only"}, RetryJob}}};
  if (path.size() != 3) return nullptr;
  const auto found = actions.find({path[0], path[2]});
  return found == actions.end() ? nullptr : &found->second;
}

}  // namespace

bool IsAction(const std::vector<std::string>& path) { return Find(path) != nullptr; }

absl::StatusOr<Json> Act(const std::vector<std::string>& path, const std::string& body,
                         Stub& sweeps) {
  const Action* action = Find(path);
  if (action == nullptr) {
    return absl::NotFoundError(Concat("there is nothing to do at ", Join(path, "/")));
  }
  const Json json = body.empty() ? Json::object() : ParseJson<Json>(body);
  if (!json.is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  for (const auto& [name, value] : json.items()) {
    if (std::find(action->members.begin(), action->members.end(), name) != action->members.end()) {
      continue;
    }
    return absl::InvalidArgumentError(
        action->members.empty()
            ? Concat("unknown member \"", Shorten(name, 80), "\"; this takes none")
            : Concat("unknown member \"", Shorten(name, 80),
                     "\"; known: ", Join(action->members, ", ")));
  }
  return action->act(path[1], Members(json), sweeps);
}

}  // namespace pelab::http
