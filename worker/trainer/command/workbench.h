// What the commands that compute have in common: the process's settings, a job's data and model on their device, the
// first event, and the analyses.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>

#include "core/spec/canonical.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/model/parameters.h"
#include "worker/trainer/protocol/arguments.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/files.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

double SecondsSince(std::chrono::steady_clock::time_point began);

// {"file", "sha256", "bytes"}.
nlohmann::ordered_json FileJson(const FileInfo& file);

// Makes the work directory and fixes threads, memory and device. Throws TrainerError: kIo, or kBadSpec for a device that
// is not here.
void PrepareProcess(const Arguments& arguments);

// A job's data and model, made in the order in which each part needs the last. `job` outlives it.
struct Workbench {
  Workbench(const spec::Job& job, at::Device device);

  const spec::Job& job;
  Dataset dataset;
  LabelSpace labels;
  DeviceData data;
  ParameterSet parameters;
  Decoder decoder;
};

// What of the arguments changes the last bits of a result, as text.
std::string ExecutionText(const Arguments& arguments);

void EmitHello(const Arguments& arguments, const Workbench& bench, std::int64_t start_epoch,
               EventStream* events);

// Throws TrainerError(kBadSpec) for an analysis that this trainer cannot run on the job; before anything is computed.
void CheckAnalyses(const spec::JobDocument& document);

// Runs them one after another and writes their events, and files into the work directory. Throws Stopped.
void RunAnalyses(const std::vector<spec::Analysis>& analyses, const Arguments& arguments,
                 const Workbench& bench, EventStream* events);

}  // namespace pelab::trainer
