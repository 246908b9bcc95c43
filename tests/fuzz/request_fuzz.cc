// Any bytes as requests to pelab.v1.Sweeps, Claims and Allocations: nothing crashes, every refusal
// can be sent, every answer can be read, and the database keeps all its invariants.
//
// An input is a sequence of calls: a byte, which chooses the method, two bytes of length and the
// request.
#include <grpcpp/server_context.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_join.h"
#include "core/claims/sheet_reader.h"
#include "core/db/check/check.h"
#include "core/rpc/sweep_document.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/services.h"
#include "tests/fuzz/small_database.h"

namespace pelab::request_fuzz {
namespace {

using fuzz::Require;
using service::AllocationsService;
using service::ClaimsService;
using service::SweepsService;

constexpr int kMostRequests = 8;
// A large sweep is expanded for longer than an input should take.
constexpr std::uint64_t kMostCells = 100;

template <typename Request>
bool IsSmall(const Request&) {
  return true;
}
bool IsSmall(const v1::SubmitRequest& request) {
  const auto sweep = rpc::ParseNewSweepDocument(request.document(), request.overrides());
  return !sweep.ok() || sweep->cells() <= kMostCells;
}
bool IsSmall(const v1::PreviewRequest& request) {
  const auto sweep = rpc::ParseNewSweepDocument(request.document(), request.overrides());
  return !sweep.ok() || sweep->cells() <= kMostCells;
}
bool IsSmall(const v1::ExtendRequest& request) {
  static const auto& sweep =
      *new experiment::Sweep(*experiment::ParseSweep(fuzz::kSmallSweep).sweep);
  const experiment::Extension extended = Extend(sweep, request.seeds());
  return !extended.sweep || extended.sweep->cells() <= kMostCells;
}

bool IsSmall(const v1::RegisterSheetRequest& request) {
  const claims::SheetResult read = claims::ReadSheet(request.document());
  if (!read.sheet) return true;
  const auto sweep =
      claims::ParseSweepOf(*read.sheet, read.sheet->sweep_file.empty() ? read.sheet->sweep_document
                                                                       : request.sweep_document());
  return !sweep.sweep || sweep.sweep->cells() <= kMostCells;
}

void RequireReadable(const google::protobuf::Message& answer) {
  const std::unique_ptr<google::protobuf::Message> back(answer.New());
  Require(back->ParseFromString(answer.SerializeAsString()), "an answer can be read",
          answer.ShortDebugString());
}

template <typename Request, typename Response, typename Service>
void Call(Service& service,
          grpc::Status (Service::*method)(grpc::ServerContext*, const Request*, Response*),
          std::string_view bytes) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (!IsSmall(request)) return;
  grpc::ServerContext context;
  Response response;
  const grpc::Status status = (service.*method)(&context, &request, &response);
  if (status.ok()) return RequireReadable(response);
  Require(status.error_code() != grpc::INTERNAL && status.error_code() != grpc::UNKNOWN &&
              status.error_code() != grpc::UNAVAILABLE,
          "a bad request is no failure of the coordinator", status.error_message());
  fuzz::RequireSentence(status.error_message());
}

void ChooseOfAllocations(AllocationsService& service, std::uint32_t method,
                         std::string_view bytes) {
  switch (method) {
    case 19:
      return Call(service, &AllocationsService::PutQueue, bytes);
    case 20:
      return Call(service, &AllocationsService::RemoveQueue, bytes);
    case 21:
      return Call(service, &AllocationsService::PauseQueue, bytes);
    case 22:
      return Call(service, &AllocationsService::ResumeQueue, bytes);
    case 23:
      return Call(service, &AllocationsService::ListQueues, bytes);
    case 24:
      return Call(service, &AllocationsService::ReportQueues, bytes);
    default:
      return Call(service, &AllocationsService::WorkerGone, bytes);
  }
}

void Choose(fuzz::Services& services, std::uint32_t method, std::string_view bytes) {
  SweepsService& service = services.sweeps();
  switch (method % 26) {
    case 0:
      return Call(service, &SweepsService::Preview, bytes);
    case 1:
      return Call(service, &SweepsService::Submit, bytes);
    case 2:
      return Call(service, &SweepsService::ListSweeps, bytes);
    case 3:
      return Call(service, &SweepsService::GetSweep, bytes);
    case 4:
      return Call<v1::CancelRequest>(service, &SweepsService::Cancel, bytes);
    case 5:
      return Call(service, &SweepsService::Pause, bytes);
    case 6:
      return Call(service, &SweepsService::Resume, bytes);
    case 7:
      return Call(service, &SweepsService::SetPriority, bytes);
    case 8:
      return Call(service, &SweepsService::Rename, bytes);
    case 9:
      return Call(service, &SweepsService::SetNote, bytes);
    case 10:
      return Call<v1::DeleteRequest>(service, &SweepsService::Delete, bytes);
    case 11:
      return Call<v1::RetryRequest>(service, &SweepsService::Retry, bytes);
    case 12:
      return Call(service, &SweepsService::Extend, bytes);
    case 13:
      return Call(service, &SweepsService::Analyze, bytes);
    case 14:
      return Call(services.claims(), &ClaimsService::RegisterSheet, bytes);
    case 15:
      return Call(services.claims(), &ClaimsService::Advance, bytes);
    case 16:
      return Call(services.claims(), &ClaimsService::ListSheets, bytes);
    case 17:
      return Call(services.claims(), &ClaimsService::GetSheet, bytes);
    case 18:
      return Call(services.claims(), &ClaimsService::ListSheetClaims, bytes);
    default:
      return ChooseOfAllocations(services.allocations(), method % 26, bytes);
  }
}

void RequireSound(const std::string& path) {
  const auto checks = db::CheckDatabase(path);
  Require(checks.ok(), "the database opens", checks.status().ToString());
  for (const db::Check& check : *checks) {
    Require(check.problems.empty(), check.name, absl::StrJoin(check.problems, "; "));
  }
}

}  // namespace

PELAB_FUZZ_TARGET(request) {
  static const fuzz::SmallDatabase original;
  static const TempDir directory;
  const std::string path = directory / "pelab.db";
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  // libFuzzer's alarm may interrupt the copy.
  std::error_code error = std::make_error_code(std::errc::interrupted);
  while (error == std::errc::interrupted) {
    std::filesystem::copy_file(original.path(), path,
                               std::filesystem::copy_options::overwrite_existing, error);
  }
  Require(!error, "the database can be copied", error.message());
  {
    fuzz::Services services(path);
    fuzz::Input input(data, size);
    for (int i = 0; i < kMostRequests && !input.empty(); ++i) {
      const std::uint32_t method = input.Number(1);
      Choose(services, method, input.Piece());
    }
  }
  RequireSound(path);
  return 0;
}

}  // namespace pelab::request_fuzz
