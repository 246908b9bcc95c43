#include "tests/bench/load/scenario.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kCallTime = absl::Minutes(2);

absl::Status Expect(const char* what, std::int64_t found, std::int64_t wanted) {
  if (found == wanted) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(what, ": ", found, ", not ", wanted));
}

}  // namespace

std::string Document(const std::string& name, std::uint64_t first, std::uint64_t count,
                     int epochs) {
  return absl::StrCat("name: ", name,
                      "\nprotocol: clean\npe: nope\n"
                      "task: {name: distance, train_examples: 99, test_examples: 97}\nseed: ",
                      first, "..", first + count - 1,
                      "\nmodel: {d_model: 8, d_ff: 16, heads: 2, layers: 2}\ntrain: {epochs: ",
                      epochs, "}\nanalyses: []\n");
}

bool Await(absl::Duration time, const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + time;
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

absl::StatusOr<std::unique_ptr<Bench>> Bench::Start(const Options& options,
                                                    const std::vector<std::string>& flags) {
  std::unique_ptr<Bench> bench(new Bench(options, flags));
  PELAB_RETURN_IF_ERROR(bench->StartAgain());
  return bench;
}

absl::Status Bench::Connect() {
  PELAB_ASSIGN_OR_RETURN(const rpc::Address address, rpc::ParseAddress(server_->address()));
  PELAB_ASSIGN_OR_RETURN(channel_, rpc::CreateChannel(address, {}));
  sweeps_ = v1::Sweeps::NewStub(channel_);
  results_ = v1::Results::NewStub(channel_);
  return absl::OkStatus();
}

absl::Status Bench::StartAgain() {
  PELAB_ASSIGN_OR_RETURN(server_, ServerProcess::Start(options_.programs + "/pelab-server",
                                                       options_.directory, flags_));
  return Connect();
}

absl::StatusOr<v1::SubmitResponse> Bench::Submit(const std::string& document, int priority,
                                                 Latencies* latency) {
  v1::SubmitRequest request;
  request.set_document(document);
  request.set_file_name("load.yaml");
  request.set_client_token(absl::StrCat("load-", ++submissions_));
  request.set_priority(priority);
  v1::SubmitResponse response;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTime));
  const std::int64_t began = Now();
  const grpc::Status status = sweeps_->Submit(&context, request, &response);
  if (latency != nullptr) latency->Add(static_cast<double>(Now() - began) / 1e6);
  if (!status.ok()) return rpc::FromGrpc(status);
  return response;
}

absl::StatusOr<std::int64_t> Bench::Ask(const std::string& sql) {
  try {
    const SQLite::Database db(server_->database(), SQLite::OPEN_READONLY, /*busyTimeoutMs=*/5000);
    SQLite::Statement query(db, sql);
    return query.executeStep() ? query.getColumn(0).getInt64() : 0;
  } catch (const SQLite::Exception& error) {
    return absl::InternalError(absl::StrCat(sql, ": ", error.what()));
  }
}

// The coordinator writes the port that it got to its log.
absl::StatusOr<int> Bench::HttpPort() const {
  const std::string path = options_.directory + "/server.log";
  int port = 0;
  const auto find = [&] {
    std::ifstream log(path);
    const std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
    static const std::string before = "pages on http://127.0.0.1:";
    const std::size_t at = text.find(before);
    if (at == std::string::npos) return false;
    const std::size_t from = at + before.size();
    return absl::SimpleAtoi(text.substr(from, text.find('/', from) - from), &port);
  };
  if (Await(absl::Seconds(10), find)) return port;
  return absl::NotFoundError(absl::StrCat("no address of the pages in ", path));
}

absl::Status Bench::AwaitExpanded(std::int64_t sweep_id, absl::Duration within) {
  const std::string sql = absl::StrCat(
      "SELECT count(*) FROM sweeps WHERE state = 'expanding' AND sweep_id = ", sweep_id);
  const bool expanded = Await(within, [&] {
    const absl::StatusOr<std::int64_t> left = Ask(sql);
    return left.ok() && *left == 0;
  });
  if (expanded) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("sweep ", sweep_id, " is not expanded in ", absl::FormatDuration(within)));
}

void Bench::BeginCpu() {
  server_cpu_ = CpuSeconds(server_->pid());
  own_cpu_ = OwnCpuSeconds();
  cpu_since_ = Now();
}

void Bench::ReportCpu(Report& report) {
  const double wall = static_cast<double>(Now() - cpu_since_) / 1e9;
  report.Add("CPU of the coordinator", (CpuSeconds(server_->pid()) - server_cpu_) / wall, "cores");
  report.Add("CPU of the generator", (OwnCpuSeconds() - own_cpu_) / wall, "cores");
}

void Bench::ReportMemory(Report& report, const std::string& asked) {
  report.Add("memory of the coordinator at most (VmHWM)", PeakMiB(server_->pid()), "MiB", asked);
}

absl::Status Bench::CheckOnce(std::int64_t sweep_id, std::uint64_t jobs, int epochs) {
  const std::string of_sweep = absl::StrCat(
      " FROM sweep_jobs AS c JOIN jobs AS j USING (job_id) JOIN attempts AS a USING "
      "(job_id) WHERE c.sweep_id = ",
      sweep_id);
  const auto wanted = static_cast<std::int64_t>(jobs);
  PELAB_ASSIGN_OR_RETURN(
      const std::int64_t succeeded,
      Ask(absl::StrCat("SELECT count(*)", of_sweep,
                       " AND j.state = 'succeeded' AND a.outcome = 'succeeded'")));
  PELAB_RETURN_IF_ERROR(Expect("jobs with a successful attempt", succeeded, wanted));
  PELAB_ASSIGN_OR_RETURN(const std::int64_t attempts,
                         Ask(absl::StrCat("SELECT count(*)", of_sweep)));
  PELAB_RETURN_IF_ERROR(Expect("attempts", attempts, wanted));
  PELAB_ASSIGN_OR_RETURN(
      const std::int64_t whole,
      Ask(absl::StrCat("SELECT count(*) FROM (SELECT count(*) AS n, min(v.epoch) AS first, "
                       "max(v.epoch) AS last FROM sweep_jobs AS c JOIN v_curves AS v USING "
                       "(job_id) WHERE c.sweep_id = ",
                       sweep_id, " GROUP BY c.job_id) WHERE n = ", epochs,
                       " AND first = 0 AND last = n - 1")));
  return Expect("jobs with each epoch once", whole, wanted);
}

absl::Status Bench::CheckGapless(std::int64_t acknowledged_epochs) {
  PELAB_ASSIGN_OR_RETURN(const std::int64_t holes,
                         Ask("SELECT count(*) FROM (SELECT count(*) AS n, max(epoch) AS last FROM "
                             "stored_epochs GROUP BY attempt_id) WHERE last + 1 <> n"));
  PELAB_RETURN_IF_ERROR(Expect("attempts with a hole in their curve", holes, 0));
  PELAB_ASSIGN_OR_RETURN(const std::int64_t stored, Ask("SELECT count(*) FROM stored_epochs"));
  if (stored >= acknowledged_epochs) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(acknowledged_epochs, " epochs were acknowledged, ", stored, " are stored"));
}

bool AllowWorkers(const Options& options, Report& report) {
  if (AllowOpenFiles(static_cast<std::uint64_t>(options.workers) + 1024)) return true;
  report.Note(absl::StrCat("SKIPPED: this user may not open ", options.workers + 1024,
                           " files at once (ulimit -n)"));
  return false;
}

absl::Status EndSessions(Fleet& fleet, Bench& bench, Report& report) {
  const WorkerHooks& counters = fleet.counters();
  const std::int64_t acknowledged = counters.epochs_acknowledged.load();
  if (counters.broken.load() > 0 || counters.superseded.load() > 0) {
    report.Fail(absl::StrCat(counters.broken.load(), " streams broke, ", counters.superseded.load(),
                             " attempts were superseded"));
  }
  fleet.Stop();
  return bench.CheckGapless(acknowledged);
}

}  // namespace pelab::load
