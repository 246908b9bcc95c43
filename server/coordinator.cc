#include "server/coordinator.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/claims/summary.h"
#include "core/rpc/lock_file.h"
#include "server/acceptor.h"
#include "server/access/gate.h"
#include "server/background.h"
#include "server/health_listener.h"
#include "server/http/http_server.h"
#include "server/limits.h"
#include "server/listen.h"
#include "server/metrics/calls.h"
#include "server/metrics/coordinator_metrics.h"
#include "server/metrics/events.h"
#include "server/sched/strand.h"
#include "server/service/admin_service.h"
#include "server/service/admission.h"
#include "server/service/allocations_service.h"
#include "server/service/artifact_collector.h"
#include "server/service/blocking.h"
#include "server/service/call_spans.h"
#include "server/service/claims_service.h"
#include "server/service/fleet_service.h"
#include "server/service/maintenance_service.h"
#include "server/service/results_service.h"
#include "server/service/silent_peers.h"
#include "server/service/sweeps_service.h"
#include "server/service/transfer_service.h"
#include "server/settle/settlement.h"
#include "server/settle/sheets.h"
#include "server/steady_poller.h"
#include "server/stored_sweep.h"

namespace pelab {
namespace {

// For calls that are under way when the coordinator stops.
constexpr absl::Duration kGrace = absl::Seconds(1);

// Bounds what all clients together take of memory and threads. A call above the limit of threads is
// refused with RESOURCE_EXHAUSTED, and memory that is short slows the readers of all connections.
void LimitResources(grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("pelab");
  quota.Resize(limits::kRpcBytes).SetMaxThreads(limits::kRpcThreads);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kStreamsOfConnection);
}

// The token that allows changes through the pages; null if changes are not allowed.
absl::StatusOr<std::shared_ptr<rpc::TokenFile>> WriteToken(const CoordinatorOptions& options) {
  if (!options.http_write) return nullptr;
  const std::string& file =
      options.http_token_file.empty() ? options.security.token_file : options.http_token_file;
  if (file.empty()) {
    return absl::InvalidArgumentError(
        "--http-write needs a token, so that not everybody who may look may change: give "
        "--http-token-file FILE, or --token-file");
  }
  return rpc::TokenFile::Open(file);
}

// Whether a call over any of the addresses shows who makes it.
bool CanIdentifyAll(const CoordinatorOptions& options) {
  return !options.admit_everybody &&
         std::all_of(options.listen.begin(), options.listen.end(),
                     [&options](const rpc::Address& address) {
                       return rpc::CanIdentify(options.security, address);
                     });
}

absl::StatusOr<std::shared_ptr<rpc::TokenFile>> SharedToken(const CoordinatorOptions& options) {
  if (options.admit_everybody || options.security.token_file.empty()) return nullptr;
  spdlog::warn(
      "everybody who has the token of {} is an operator; `pelab admin principal add` gives each "
      "person "
      "and each worker a token of their own",
      options.security.token_file);
  return rpc::TokenFile::Open(options.security.token_file);
}

absl::Status CheckListen(const CoordinatorOptions& options) {
  for (const rpc::Address& address : options.listen) {
    PELAB_RETURN_IF_ERROR(rpc::CheckServerSecurity(options.security, address));
    if (options.admit_everybody && !address.is_unix) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--admit-everybody is only allowed with Unix sockets, not with ", address.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Members are built in this order and destroyed in reverse order.
struct Coordinator::Parts {
  Parts(rpc::LockFile lock_file, std::unique_ptr<Background> beside,
        std::unique_ptr<store::ArtifactFiles> files, std::shared_ptr<service::DroppedFiles> dropped,
        std::unique_ptr<store::Store> opened, access::Methods methods,
        std::shared_ptr<rpc::TokenFile> shared_token, const CoordinatorOptions& options)
      : lock(std::move(lock_file)),
        background(std::move(beside)),
        artifacts(std::move(files)),
        store(std::move(opened)),
        strand(*options.clock),
        calls(methods),
        writer(*store, {.on_change =
                            [this](bool works) {
                              strand.Post([this, works] { scheduler.StorageWorks(works); });
                            },
                        .on_commit =
                            [this](absl::Duration took, const auto& results) {
                              events.Committed(took, results);
                              background->Committed(results);
                            }}),
        collector(*options.clock, *artifacts, writer, std::move(dropped), options.artifact_grace),
        scheduler(
            *options.clock, strand, writer,
            {.lease = options.lease,
             .longest_silence = options.attempt_silence,
             .token = [] { return RandomToken(); },
             .span = [] { return RandomSpanId(); },
             .on_dispatch = [this](absl::Duration waited) { events.Dispatched(waited); },
             .on_ended = [this, &clock = *options.clock](
                             const auto& ended) { background->AttemptEnded(ended, clock.Wall()); },
             .on_spent = [this](const auto& account) { background->GpuSecondsSpent(account); },
             .on_quarantine =
                 [this](const auto& worker_id, const auto& name, absl::Duration length) {
                   background->Quarantined(worker_id, name, length);
                 }}),
        gate(*options.clock, writer, std::move(methods), std::move(shared_token)),
        expander(*options.clock, writer, strand, scheduler),
        readers(options.database),
        admission(gate),
        sweep_parts{*options.clock, writer, strand,    scheduler,  expander,
                    readers,        gate,   admission, *artifacts, collector},
        sweeps(sweep_parts),
        claims(sweep_parts, [this](const auto& budget) { background->BudgetSpent(budget); }),
        results(readers, admission, *artifacts, [this] { return AskWorkers(); }),
        fleet({*options.clock, strand, scheduler, writer, options.heartbeat, options.lease,
               [] { return RandomUnit(); }},
              *artifacts, collector, gate),
        maintenance(options.database, writer, *artifacts, gate),
        transfer(options.database, writer, *artifacts, collector, gate),
        admin({*options.clock, writer, readers, gate, CanIdentifyAll(options),
               [this](const store::Principal& principal) {
                 strand.Post([this, principal] { SetAllowance(principal); });
               }}),
        allocations({*options.clock, writer, gate, strand, scheduler}),
        silent_peers(*options.clock, options.peer_silence, options.untaken_bytes),
        metrics(
            {.events = events,
             .calls = calls,
             .writer = writer,
             .artifacts = *artifacts,
             .scheduler = [this] { return AskFigures(); },
             .last_backup = [this] { return background->LastBackup(maintenance.last_backup()); },
             .notifications = [this] { return background->Notifications(); },
             .spans_dropped = [this] { return background->SpansDropped(); },
             .queues = [this] { return allocations.Figures(); },
             .database = options.database,
             .artifacts_directory = absl::StrCat(options.database, ".artifacts"),
             .artifact_quota = options.artifact_quota,
             .certificate_file = options.security.tls_cert_file,
             .sweeps = options.metrics_sweeps}) {
    gate.CountRefusals([this](absl::string_view path, absl::StatusCode code) {
      calls.Refused({path.data(), path.size()}, static_cast<int>(code));
    });
  }

  absl::Status LoadPrincipals(const CoordinatorOptions& options);
  void SetAllowance(const store::Principal& principal);
  absl::Status Recover();
  http::Sources MakeSources(const Clock& clock);
  std::vector<sched::WorkerStatus> AskWorkers();
  absl::StatusOr<sched::Scheduler::Demand> AskDemand(const sched::Slot& slot);
  std::optional<sched::SchedulerFigures> AskFigures();

  rpc::LockFile lock;  // the first: it must outlive all connections to the database
  std::unique_ptr<Background> background;  // the other threads tell it what happens
  std::unique_ptr<store::ArtifactFiles> artifacts;
  std::unique_ptr<store::Store> store;
  sched::Strand strand;
  metrics::Events events;
  metrics::Calls calls;
  store::Writer writer;
  service::ArtifactCollector collector;
  sched::Scheduler scheduler;
  access::Gate gate;
  service::Expander expander;
  db::ReaderPool readers;
  service::Admission admission;
  service::SweepParts sweep_parts;
  service::SweepsService sweeps;
  service::ClaimsService claims;
  service::ResultsService results;
  service::FleetService fleet;
  service::MaintenanceService maintenance;
  service::TransferService transfer;
  service::AdminService admin;
  service::AllocationsService allocations;
  service::SilentPeers silent_peers;
  metrics::CoordinatorMetrics metrics;
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::unique_ptr<grpc::Server> server;
  std::optional<SteadyPoller> poller;
  std::optional<http::Sources> sources;          // used by the pages
  std::unique_ptr<v1::Sweeps::Stub> own_sweeps;  // the pages use the same calls as every client
  std::unique_ptr<http::HttpServer> http;
  std::unique_ptr<HealthListener> health;  // of --health
  bool stopped = false;
};

http::Sources Coordinator::Parts::MakeSources(const Clock& clock) {
  return {.clock = clock,
          .version = [this] { return writer.commits(); },
          .waiting_reason =
              [this](std::int64_t sweep_id) {
                return service::AskOn<std::string>(
                    strand, [this, sweep_id] { return scheduler.WaitingReason(sweep_id); }, "");
              },
          .workers = [this] { return AskWorkers(); },
          .demand = [this](const sched::Slot& slot) { return AskDemand(slot); },
          .summaries = [this](db::Reader& reader,
                              std::int64_t sheet) -> absl::StatusOr<std::vector<claims::Summary>> {
            PELAB_ASSIGN_OR_RETURN(const settle::StoredSheet stored,
                                   claims.sheets().Load(reader, absl::StrCat(sheet)));
            return settle::SummariesOf(reader, stored);
          },
          .seeds = [this](db::Reader& reader, std::int64_t sheet,
                          const std::string& claim) -> absl::StatusOr<render::Json> {
            PELAB_ASSIGN_OR_RETURN(const settle::StoredSheet stored,
                                   claims.sheets().Load(reader, absl::StrCat(sheet)));
            return settle::SeedsOf(reader, stored, claim);
          },
          .metrics = [this] { return metrics.Text(); }};
}

std::vector<sched::WorkerStatus> Coordinator::Parts::AskWorkers() {
  return service::AskOn<std::vector<sched::WorkerStatus>>(
      strand, [this] { return scheduler.Workers(); }, {});
}

absl::StatusOr<sched::Scheduler::Demand> Coordinator::Parts::AskDemand(const sched::Slot& slot) {
  using Answer = absl::StatusOr<sched::Scheduler::Demand>;
  return service::AskOn<Answer>(
      strand, [this, slot] { return Answer(scheduler.DemandFor(slot)); },
      absl::UnavailableError("the scheduler is busy: try again later"));
}

std::optional<sched::SchedulerFigures> Coordinator::Parts::AskFigures() {
  using Figures = std::optional<sched::SchedulerFigures>;
  return service::AskOn<Figures>(
      strand, [this] { return Figures(scheduler.Figures()); }, std::nullopt);
}

// The principals that are stored, and whether there are enough of them for the addresses.
absl::Status Coordinator::Parts::LoadPrincipals(const CoordinatorOptions& options) {
  if (options.admit_everybody) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const std::vector<store::Principal> principals, store->Principals());
  for (const store::Principal& principal : principals) {
    gate.principals().Set(principal);
    strand.Post([this, principal] { SetAllowance(principal); });
  }
  for (const rpc::Address& address : options.listen) {
    const bool insecure = !rpc::CanIdentify(options.security, address);
    if (insecure && gate.principals().on()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the database has principals, and nobody can be told from anybody else on ",
          address.ToString(), "; give --tls-cert and --tls-key, or listen on 127.0.0.1 or a Unix ",
          "socket"));
    }
    if (!insecure && !address.IsLocal() && !gate.principals().on()) {
      return absl::InvalidArgumentError(absl::StrCat(
          address.ToString(),
          " can be reached from other machines, and there is no principal yet; ",
          "give --token-file, or start on this machine alone and add one: pelab admin principal ",
          "add NAME --role operator"));
    }
  }
  return absl::OkStatus();
}

void Coordinator::Parts::SetAllowance(const store::Principal& principal) {
  scheduler.SetPrincipal(principal.name,
                         {.share = principal.limits.share() > 0 ? principal.limits.share() : 1,
                          .max_slots = principal.limits.max_slots(),
                          .gpu_seconds = principal.limits.gpu_seconds(),
                          .gpu_seconds_used = principal.gpu_seconds_used});
}

// Runs on the strand, because the scheduler belongs to it. Nothing writes to the store yet, so it
// can be read here; expansion continues only afterwards.
absl::Status Coordinator::Parts::Recover() {
  std::vector<store::ExpandingSweep> expanding;
  std::vector<std::int64_t> dropping;
  std::vector<std::int64_t> deleting;
  int jobs = 0;
  int open_attempts = 0;
  absl::Status status;
  Notification done;
  strand.Post([&] {
    status = store->Recover(
        [&](const store::RecoveredSweep& sweep) {
          if (sweep.deleting) deleting.push_back(sweep.settings.sweep_id);
          if (sweep.dropping) {
            dropping.push_back(sweep.settings.sweep_id);
          } else if (!sweep.deleting) {
            scheduler.SetSweepSettings(sweep.settings);
          }
        },
        [&](const store::ReadyJob& job) {
          scheduler.AddReady(job);
          ++jobs;
        },
        [&](const store::OpenAttempt& open) {
          scheduler.RecoverOpen(open);
          ++open_attempts;
        },
        [&](const store::ExpandingSweep& sweep) { expanding.push_back(sweep); });
    scheduler.Start();
    done.Notify();
  });
  done.Wait();
  PELAB_RETURN_IF_ERROR(status);
  spdlog::info("{} jobs are queued, {} attempts are open", jobs, open_attempts);
  for (const store::ExpandingSweep& sweep : expanding) {
    std::optional<experiment::Sweep> parsed =
        experiment::ParseSweep(sweep.document, OverridesFromJson(sweep.overrides_json)).sweep;
    for (const std::string& seeds : sweep.extensions) {
      if (parsed) parsed = experiment::ExtendAgain(*parsed, seeds).sweep;
    }
    if (parsed) {
      expander.Add(sweep.sweep_id, *std::move(parsed), sweep.expanded_cells);
    } else {
      spdlog::error("sweep {} cannot be expanded any further: this version refuses its document",
                    sweep.sweep_id);
    }
  }
  for (const std::int64_t sweep_id : dropping) expander.Drop(sweep_id);
  for (const std::int64_t sweep_id : deleting) expander.Delete(sweep_id);
  return absl::OkStatus();
}

Coordinator::Coordinator(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Coordinator::~Coordinator() { Stop(); }

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(const CoordinatorOptions& given) {
  CoordinatorOptions options = given;
  options.database = ResolveLinks(given.database);
  // Refuse first what can be refused without touching a file.
  PELAB_RETURN_IF_ERROR(CheckListen(options));
  PELAB_ASSIGN_OR_RETURN(access::Methods methods, access::Methods::Build());
  PELAB_ASSIGN_OR_RETURN(auto shared_token, SharedToken(options));
  if (options.http) {
    PELAB_RETURN_IF_ERROR(
        http::CheckHttpAddress(*options.http, options.http_insecure || options.security.insecure));
  }
  PELAB_ASSIGN_OR_RETURN(auto write_token, WriteToken(options));
  PELAB_ASSIGN_OR_RETURN(rpc::LockFile lock, rpc::LockFile::Acquire(options.database));
  PELAB_ASSIGN_OR_RETURN(auto background, Background::Open(options));
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  for (const rpc::Address& address : options.listen) {
    PELAB_ASSIGN_OR_RETURN(acceptors.emplace_back(), Acceptor::Take(address));
  }
  if (options.http) PELAB_RETURN_IF_ERROR(CheckFree(*options.http));
  if (options.health) PELAB_RETURN_IF_ERROR(CheckFree(*options.health));
  PELAB_ASSIGN_OR_RETURN(
      auto artifacts,
      store::ArtifactFiles::Open(options.database, options.artifact_quota, options.artifact_store));
  store::StoreOptions store_options;
  store_options.artifact_bytes = [files = artifacts.get()](const std::string& sha256) {
    return files->StoredBytes(sha256);
  };
  const auto dropped = std::make_shared<service::DroppedFiles>();
  store_options.ended = [beside = background.get()](const auto& sweep_ids) {
    beside->SweepsEnded(sweep_ids);
  };
  store_options.dropped = [dropped](const auto& sha256s) { dropped->Add(sha256s); };
  PELAB_ASSIGN_OR_RETURN(auto store, store::Store::Open(options.database, store_options));
  std::unique_ptr<Coordinator> coordinator(new Coordinator(std::make_unique<Parts>(
      std::move(lock), std::move(background), std::move(artifacts), dropped, std::move(store),
      std::move(methods), std::move(shared_token), options)));
  coordinator->parts_->acceptors = std::move(acceptors);
  PELAB_RETURN_IF_ERROR(coordinator->parts_->background->StartNotifier());
  PELAB_RETURN_IF_ERROR(coordinator->parts_->LoadPrincipals(options));
  PELAB_ASSIGN_OR_RETURN(const auto queues, coordinator->parts_->store->Queues());
  coordinator->parts_->allocations.Load(queues);
  PELAB_RETURN_IF_ERROR(coordinator->parts_->Recover());
  PELAB_RETURN_IF_ERROR(coordinator->Listen(options));
  if (options.http) PELAB_RETURN_IF_ERROR(coordinator->ListenHttp(options, std::move(write_token)));
  coordinator->parts_->background->StartBackups(*coordinator->parts_->artifacts);
  if (options.health) {
    PELAB_ASSIGN_OR_RETURN(coordinator->parts_->health, HealthListener::Listen(*options.health));
    coordinator->health_address_ = coordinator->parts_->health->address();
  }
  return coordinator;
}

absl::Status Coordinator::Listen(const CoordinatorOptions& options) {
  // gRPC stays initialized until the process ends, because shutting it down may wait 10 s for one
  // of its own threads.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  LimitResources(builder);
  std::vector<std::unique_ptr<Acceptor::Connections>> connections;
  for (const rpc::Address& address : options.listen) {
    using Kind = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    connections.push_back(builder.experimental().AddExternalConnectionAcceptor(
        Kind::FROM_FD,
        rpc::MakeServerCredentials(options.security, address,
                                   options.admit_everybody ? nullptr : parts_->gate.Processor())));
  }
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(parts_->silent_peers.Factory());
  interceptors.push_back(parts_->gate.Interceptor());
  interceptors.push_back(parts_->calls.Factory());
  if (trace::SpanFile* const spans = parts_->background->spans()) {
    interceptors.push_back(service::CallSpans(*spans));
  }
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  builder.RegisterService(&parts_->sweeps);
  builder.RegisterService(&parts_->claims);
  builder.RegisterService(&parts_->results);
  builder.RegisterService(&parts_->fleet);
  builder.RegisterService(&parts_->maintenance);
  builder.RegisterService(&parts_->transfer);
  builder.RegisterService(&parts_->admin);
  builder.RegisterService(&parts_->allocations);
  parts_->server = builder.BuildAndStart();
  if (!parts_->server) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen.front().ToString()));
  }
  parts_->poller.emplace();
  for (std::size_t i = 0; i < connections.size(); ++i) {
    PELAB_RETURN_IF_ERROR(parts_->acceptors[i]->Start(std::move(connections[i])));
    addresses_.push_back(parts_->acceptors[i]->address().ToString());
  }
  return parts_->lock.WriteAddress(addresses_.front());
}

absl::Status Coordinator::ListenHttp(const CoordinatorOptions& options,
                                     std::shared_ptr<rpc::TokenFile> write_token) {
  parts_->sources.emplace(parts_->MakeSources(*options.clock));
  parts_->own_sweeps = v1::Sweeps::NewStub(parts_->server->InProcessChannel({}));
  PELAB_ASSIGN_OR_RETURN(parts_->http,
                         http::HttpServer::Start({.listen = *options.http,
                                                  .hosts = options.http_hosts,
                                                  .database = options.database,
                                                  .write_token = std::move(write_token),
                                                  .sweeps = parts_->own_sweeps.get()},
                                                 *parts_->sources));
  http_address_ = parts_->http->address();
  spdlog::info("pages on {}/", http_address_);
  return absl::OkStatus();
}

absl::Status Coordinator::CheckAlive(absl::Duration patience) {
  struct Answers {
    Notification writer;
    Notification scheduler;
  };
  const auto answers = std::make_shared<Answers>();  // they may come after the patience
  parts_->strand.Post([answers] { answers->scheduler.Notify(); });
  PELAB_RETURN_IF_ERROR(parts_->writer.Append(
      {}, [answers](const auto&) { answers->writer.Notify(); },
      store::Journal::Urgency::kInternal));
  const Clock& clock = SystemClock::Instance();
  const absl::Duration deadline = clock.Monotonic() + patience;
  const bool written = answers->writer.WaitFor(patience);
  const bool scheduled = answers->scheduler.WaitFor(deadline - clock.Monotonic());
  if (written && scheduled) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the ", written ? "scheduler" : "writer",
                                                  " thread has done nothing for ",
                                                  absl::FormatDuration(patience)));
}

void Coordinator::Stop() {
  if (parts_->stopped) return;
  parts_->stopped = true;
  parts_->background->BeginStop();
  parts_->health.reset();
  parts_->http.reset();
  parts_->own_sweeps.reset();
  for (const auto& acceptor : parts_->acceptors) acceptor->Stop();
  if (parts_->server) {
    parts_->server->GetHealthCheckService()->Shutdown();
    parts_->fleet.CloseAll();
    parts_->sweeps.Stop();
    parts_->results.Stop();
    parts_->maintenance.Stop();
    parts_->server->Shutdown(absl::ToChronoTime(absl::Now() + kGrace));
    parts_->server->Wait();
    parts_->server.reset();
    parts_->poller.reset();
  }
  parts_->gate.RecordRefusals();
  parts_->expander.Stop();
  parts_->collector.Stop();
  parts_->writer.Stop();
  parts_->strand.Stop();
  parts_->background->Stop();
}

}  // namespace pelab
