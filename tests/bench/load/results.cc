// Reading the results of ten thousand jobs: with the real program, as people do, and within one
// process.
#include <fcntl.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/db/read/reader.h"
#include "core/experiment/sweep.h"
#include "server/store/store.h"
#include "tests/bench/load/scenario.h"
#include "tests/support/events.h"

namespace pelab::load {
namespace {

constexpr int kSlice = 500;
constexpr int kCalls = 10;

template <typename Result>
absl::StatusOr<Result> Do(store::Store& store, store::Write write) {
  const std::vector<store::Write> writes = {std::move(write)};
  PELAB_ASSIGN_OR_RETURN(auto results, store.Apply(writes));
  PELAB_RETURN_IF_ERROR(results.front().status());
  return std::get<Result>(*std::move(results.front()));
}

// Adds the whole curve of the attempt, in the form in which its worker sends it.
void AddEvents(const store::Assignment& assignment, int epochs, std::vector<store::Write>& writes) {
  std::uint64_t sequence = 0;
  const auto add = [&](EventBody body) {
    writes.push_back(
        EventWrite(assignment.attempt_id, assignment.token, ++sequence, std::move(body)));
  };
  add(StartedEvent(0, epochs, "{}", store::Execution{1, 0, 1}));
  for (int at = 0; at < epochs; ++at) {
    v1::Epoch epoch;
    epoch.set_epoch(at);
    epoch.set_train_loss(1.0 / (3 + at));
    epoch.set_train_correct(40 + at);
    epoch.set_train_total(999);
    epoch.set_test_loss(1.0 / (7 + at));
    epoch.set_test_correct(41 + at + assignment.job_id % 50);
    epoch.set_test_total(997);
    epoch.set_learning_rate(1e-3);
    epoch.set_seconds(0.1);
    add(std::move(epoch));
  }
  add(SucceededEvent(15));
}

// Stores jobs of every PE with several seeds, as a finished sweep.
absl::Status Fill(store::Store& store, const experiment::Sweep& sweep, int epochs) {
  PELAB_RETURN_IF_ERROR(
      Do<store::WorkerStored>(store, store::WorkerHello{.worker_id = "w", .slots_json = "[]"})
          .status());
  PELAB_ASSIGN_OR_RETURN(const auto stored,
                         Do<store::SweepStored>(store, store::SubmitSweep{.name = sweep.name(),
                                                                          .client_token = "t",
                                                                          .analyses_json = "[]",
                                                                          .cells = sweep.cells()}));
  for (std::uint64_t from = 0; from < sweep.cells(); from += kSlice) {
    store::ExpandSlice slice{.sweep_id = stored.sweep_id, .from = from};
    slice.next = std::min(from + kSlice, sweep.cells());
    slice.last = slice.next == sweep.cells();
    for (std::uint64_t ordinal = from; ordinal < slice.next; ++ordinal) {
      const auto cell = sweep.At(ordinal);
      slice.cells.push_back(
          {.ordinal = ordinal,
           .key = cell->key,
           .pe_label = cell->pe_label,
           .protocol_label = cell->protocol_label,
           .seed = cell->job.seed,
           .spec_json = cell->canonical_json,
           .requirement = {.pe = cell->job.pe, .task = cell->job.task, .device_kind = "any"},
           .epochs = epochs});
    }
    PELAB_ASSIGN_OR_RETURN(const auto ready, Do<store::SliceStored>(store, std::move(slice)));
    std::vector<store::Write> writes;
    for (const store::ReadyJob& job : ready.ready) {
      PELAB_ASSIGN_OR_RETURN(
          const auto created,
          Do<store::AttemptCreated>(
              store, store::CreateAttempt{
                         .job_id = job.job_id, .worker_id = "w", .device = "cpu", .token = 7}));
      AddEvents(*created.assignment, epochs, writes);
    }
    PELAB_RETURN_IF_ERROR(store.Apply(writes).status());
  }
  while (store.MoveEpochs()) {
  }
  store.Checkpoint(/*truncate=*/true);
  return absl::OkStatus();
}

class Reading {
 public:
  Reading(const Options& options, Report& report) : options_(options), report_(report) {}

  absl::Status Run() {
    PELAB_ASSIGN_OR_RETURN(bench_, Bench::Start(options_));
    PELAB_RETURN_IF_ERROR(Program("pelab results, grouped over all", "<= 200",
                                  {"results", "results", "--group-by", "pe"}));
    PELAB_RETURN_IF_ERROR(Program("pelab curves, one job", "", {"curves", "5000"}));
    PELAB_RETURN_IF_ERROR(
        Program("pelab curves, all as CSV", "", {"curves", "results", "--output", "csv"}, 1));
    PELAB_RETURN_IF_ERROR(Call());
    return Direct();
  }

 private:
  absl::Status Program(const std::string& what, const std::string& asked,
                       std::vector<std::string> words, int calls = kCalls) {
    Latencies times;
    for (int i = 0; i < calls; ++i) {
      UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
      SpawnOptions spawn{
          .argv = {options_.programs + "/pelab", "--server", bench_->server().address()},
          .fds = {{null.get(), 1}}};
      spawn.argv.insert(spawn.argv.end(), words.begin(), words.end());
      const std::int64_t began = Now();
      PELAB_ASSIGN_OR_RETURN(Process process, Process::Spawn(spawn));
      if (const ExitStatus ended = process.Wait(); !ended.ok()) {
        return absl::InternalError(absl::StrCat(what, ": ", ended.ToString()));
      }
      times.Add(static_cast<double>(Now() - began) / 1e6);
    }
    report_.Add(what, times, asked);
    return absl::OkStatus();
  }

  // Reads one curve per call to the coordinator, as a user's own program would.
  absl::Status Call() {
    Latencies times;
    for (int i = 0; i < 200; ++i) {
      v1::ListCurvesRequest request;
      request.mutable_filter()->add_jobs(absl::StrCat(1 + i * 37 % options_.jobs));
      v1::ListCurvesResponse response;
      grpc::ClientContext context;
      const std::int64_t began = Now();
      const grpc::Status status = bench_->results().ListCurves(&context, request, &response);
      times.Add(static_cast<double>(Now() - began) / 1e6);
      if (!status.ok() || response.rows_size() != options_.epochs) {
        return absl::InternalError(
            absl::StrCat("a curve of ", response.rows_size(), " epochs: ", status.error_message()));
      }
    }
    report_.Add("one curve by a call", times, "<= 5");
    return absl::OkStatus();
  }

  // Reads all curves from the file within one process; this is compared with Optuna.
  absl::Status Direct() {
    PELAB_ASSIGN_OR_RETURN(const auto reader, db::Reader::Open(bench_->server().database()));
    const std::int64_t began = Now();
    v1::ListCurvesRequest request;
    request.mutable_filter()->set_sweep("results");
    request.mutable_page()->set_limit(db::kMaxPage);
    std::uint64_t rows = 0;
    do {
      PELAB_ASSIGN_OR_RETURN(const v1::ListCurvesResponse page, reader->ListCurves(request));
      rows += static_cast<std::uint64_t>(page.rows_size());
      request.mutable_page()->set_after(page.next());
    } while (!request.page().after().empty());
    const double seconds = static_cast<double>(Now() - began) / 1e9;
    if (rows != options_.jobs * static_cast<std::uint64_t>(options_.epochs)) {
      return absl::DataLossError(absl::StrCat(rows, " epochs were read"));
    }
    report_.Add("all curves read in one process", seconds, "s");
    report_.Add("all curves read in one process", static_cast<double>(rows) / seconds, "epochs/s",
                "20 times Optuna's (compare.py)");
    return absl::OkStatus();
  }

  const Options& options_;
  Report& report_;
  std::unique_ptr<Bench> bench_;
};

}  // namespace

absl::Status RunResults(const Options& options, Report& report) {
  const std::string document = absl::StrCat(
      "name: results\nprotocol: clean\npe: [nope, absolute, random, relative, alibi, "
      "rope, mla, partial_rope]\n"
      "task: {name: distance, train_examples: 999, test_examples: 997}\nseed: 0..",
      options.jobs / 8 - 1,
      "\nmodel: {d_model: 16, d_ff: 16, heads: 2, layers: 2}\ntrain: {epochs: ", options.epochs,
      "}\nanalyses: []\n");
  experiment::SweepResult parsed = experiment::ParseSweep(document, {});
  if (!parsed.sweep) {
    return absl::InternalError(parsed.violations.front().message);
  }
  const std::int64_t began = Now();
  {
    PELAB_ASSIGN_OR_RETURN(const auto store, store::Store::Open(options.directory + "/pelab.db"));
    PELAB_RETURN_IF_ERROR(Fill(*store, *parsed.sweep, options.epochs));
  }
  const double seconds = static_cast<double>(Now() - began) / 1e9;
  report.Note(absl::StrCat(options.jobs, " jobs of ", options.epochs, " epochs"));
  report.Add("stored through the store, batches of 500 jobs", seconds, "s");
  report.Add("stored through the store, batches of 500 jobs",
             static_cast<double>(options.jobs) * options.epochs / seconds, "epochs/s");
  return Reading(options, report).Run();
}

}  // namespace pelab::load
