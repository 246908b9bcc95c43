// The parts of a coordinator behind v1.Sweeps, Claims and Allocations, with their threads and
// without a network.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/db/read/reader_pool.h"
#include "server/access/gate.h"
#include "server/sched/scheduler.h"
#include "server/sched/strand.h"
#include "server/service/allocations_service.h"
#include "server/service/claims_service.h"
#include "server/service/expander.h"
#include "server/service/sweeps_service.h"
#include "server/store/store.h"
#include "server/store/writer.h"
#include "tests/fuzz/fuzz.h"

namespace pelab::fuzz {

class Services {
 public:
  // Serves the database at `path`. What was queued there stays queued.
  explicit Services(const std::string& path)
      : store_(Opened(path)),
        strand_(clock_),
        writer_(*store_, {.gather = absl::ZeroDuration()}),
        readers_(path),
        artifacts_(ArtifactsOf(path)) {
    Notification started;
    strand_.Post([&] {
      scheduler_.Start();
      started.Notify();
    });
    started.Wait();
  }
  ~Services() {
    sweeps_.Stop();
    collector_.Stop();
    expander_.Stop();
    writer_.Stop();
    strand_.Stop();
  }

  service::SweepsService& sweeps() { return sweeps_; }
  service::ClaimsService& claims() { return claims_; }
  service::AllocationsService& allocations() { return allocations_; }
  db::ReaderPool& readers() { return readers_; }

 private:
  static std::unique_ptr<store::Store> Opened(const std::string& path) {
    auto store = store::Store::Open(path);
    Require(store.ok(), "the database opens", store.status().ToString());
    return *std::move(store);
  }

  static std::unique_ptr<store::ArtifactFiles> ArtifactsOf(const std::string& path) {
    auto artifacts = store::ArtifactFiles::Open(path, /*quota=*/1 << 20);
    Require(artifacts.ok(), "the folder of files opens", artifacts.status().ToString());
    return *std::move(artifacts);
  }

  const Clock& clock_ = SystemClock::Instance();
  std::unique_ptr<store::Store> store_;
  sched::Strand strand_;
  store::Writer writer_;
  std::atomic<std::uint64_t> token_ = 0;
  sched::Scheduler scheduler_{clock_, strand_, writer_, {.token = [this] { return ++token_; }}};
  service::Expander expander_{clock_, writer_, strand_, scheduler_};
  db::ReaderPool readers_;
  access::Gate gate_{clock_, writer_, *access::Methods::Build(), nullptr};  // admits everybody
  service::Admission admission_{gate_};
  std::unique_ptr<store::ArtifactFiles> artifacts_;
  service::ArtifactCollector collector_{clock_, *artifacts_, writer_,
                                        std::make_shared<service::DroppedFiles>(), absl::Hours(1)};
  service::SweepsService sweeps_{{clock_, writer_, strand_, scheduler_, expander_, readers_, gate_,
                                  admission_, *artifacts_, collector_}};
  service::AllocationsService allocations_{{clock_, writer_, gate_, strand_, scheduler_}};
  service::ClaimsService claims_{{clock_, writer_, strand_, scheduler_, expander_, readers_, gate_,
                                  admission_, *artifacts_, collector_},
                                 [](const auto& /*budget*/) {}};
};

}  // namespace pelab::fuzz
