// The parts that all scenarios of the load bench share: a coordinator on a disk, calls to it, the
// CPU time that each side used, and the check that everything arrived exactly once.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pelab/v1/results.grpc.pb.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "tests/bench/load/fleet.h"
#include "tests/bench/load/host.h"
#include "tests/bench/load/report.h"

namespace pelab::load {

struct Options {
  std::string scenario;
  std::string directory;  // for the database; removed afterwards
  std::string programs;   // the folder of pelab-server and pelab
  int workers = 1000;
  int slots = 1;
  int channels = 0;
  std::uint64_t jobs = 100'000;
  int epochs = 1;
  double rate = 25'000;                     // epochs per second of all workers together
  absl::Duration time = absl::Seconds(30);  // of the measurement, or of each flood
  std::vector<std::string> only;            // names of floods; empty: all
};

// A document with `count` jobs of `epochs` epochs, with seeds from `first` on.
std::string Document(const std::string& name, std::uint64_t first, std::uint64_t count, int epochs);

class Bench {
 public:
  // `flags` are added to the coordinator's command line.
  static absl::StatusOr<std::unique_ptr<Bench>> Start(const Options& options,
                                                      const std::vector<std::string>& flags = {});

  ServerProcess& server() { return *server_; }
  // Starts the coordinator again after it was stopped or killed.
  absl::Status StartAgain();

  // Submits a sweep and returns the answer; adds its latency to `latency` unless that is null.
  absl::StatusOr<v1::SubmitResponse> Submit(const std::string& document, int priority = 0,
                                            Latencies* latency = nullptr);
  v1::Results::Stub& results() { return *results_; }
  v1::Sweeps::Stub& sweeps() { return *sweeps_; }
  // Reads a number from the database, for facts that no call reports or that are cheaper to read
  // there.
  absl::StatusOr<std::int64_t> Ask(const std::string& sql);
  // The port that its pages and metrics got, if `flags` ask for `--http 127.0.0.1:0`.
  absl::StatusOr<int> HttpPort() const;
  // Waits until every cell of the sweep is stored.
  absl::Status AwaitExpanded(std::int64_t sweep_id, absl::Duration within);

  // Measures the CPU time of both sides from here to ReportCpu.
  void BeginCpu();
  void ReportCpu(Report& report);
  void ReportMemory(Report& report, const std::string& asked);

  // Checks that every job of the sweep exists once, with one succeeded attempt and each epoch once.
  absl::Status CheckOnce(std::int64_t sweep_id, std::uint64_t jobs, int epochs);
  // Checks that no attempt's curve has a gap and that all acknowledged epochs are stored.
  absl::Status CheckGapless(std::int64_t acknowledged_epochs);

 private:
  Bench(const Options& options, const std::vector<std::string>& flags)
      : options_(options), flags_(flags) {}
  absl::Status Connect();

  const Options options_;
  const std::vector<std::string> flags_;
  std::optional<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sweeps::Stub> sweeps_;
  std::unique_ptr<v1::Results::Stub> results_;
  int submissions_ = 0;
  double server_cpu_ = 0;
  double own_cpu_ = 0;
  std::int64_t cpu_since_ = 0;
};

// The scenarios. An error means that the run could not be done; wrong results are recorded in the
// report.
absl::Status RunDispatch(const Options& options, Report& report);
absl::Status RunEvents(const Options& options, Report& report);
absl::Status RunMillion(const Options& options, Report& report);
absl::Status RunResults(const Options& options, Report& report);
absl::Status RunScrapes(const Options& options, Report& report);
absl::Status RunFloods(const Options& options, Report& report);  // floods/floods.cc

// Waits until `condition` is true; false if it is not true within `time`.
bool Await(absl::Duration time, const std::function<bool()>& condition);

// Whether this process may open a connection for each worker, of which it has one end. Otherwise
// the report says that the scenario is skipped.
bool AllowWorkers(const Options& options, Report& report);

// Ends the workers' sessions. The report fails if a stream broke or an attempt was superseded
// before. Then Bench::CheckGapless.
absl::Status EndSessions(Fleet& fleet, Bench& bench, Report& report);

}  // namespace pelab::load
