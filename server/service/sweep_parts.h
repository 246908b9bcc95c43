// The parts that the services that change sweeps work with. All of them must outlive these.
#pragma once

#include "core/base/clock.h"
#include "core/db/read/reader_pool.h"
#include "server/access/gate.h"
#include "server/sched/scheduler.h"
#include "server/service/admission.h"
#include "server/service/artifact_collector.h"
#include "server/service/expander.h"
#include "server/store/writer.h"

namespace pelab::service {

struct SweepParts {
  const Clock& clock;
  store::Writer& writer;
  sched::Executor& executor;
  sched::Scheduler& scheduler;
  Expander& expander;
  db::ReaderPool& readers;
  access::Gate& gate;
  Admission& admission;
  store::ArtifactFiles& artifacts;
  ArtifactCollector& collector;
};

}  // namespace pelab::service
