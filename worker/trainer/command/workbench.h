// What the commands that compute have in common: the process's settings, data and model on their device, and the analyses.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/parameters/parameters.h"
#include "worker/trainer/protocol/arguments.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/files.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

double SecondsSince(std::chrono::steady_clock::time_point began);

// {"file", "sha256", "bytes"}.
nlohmann::ordered_json FileJson(const FileInfo& file);

// Makes the work directories and fixes threads, memory and device. Throws TrainerError: kIo, or kBadSpec for a device that
// is not here.
void PrepareProcess(const Arguments& arguments);

// The data and model of a job, or of several members of one configuration (model/members.h), made in the order in which each
// part needs the last. The jobs outlive it. Its parts refer to one another: it stays where it is.
struct Workbench {
  Workbench(const std::vector<const experiment::Job*>& jobs,
            const std::vector<const Dataset*>& datasets, at::Device device);
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  const experiment::Job& job;  // the first
  LabelSpace labels;
  DeviceData data;
  ParameterSet parameters;
  Decoder decoder;
};

// Of the job's model.
std::int64_t CountParameters(const experiment::Job& job, const Dataset& data);

// Throws TrainerError(kBadSpec) for an analysis that this trainer cannot run on the job; before anything is computed.
void CheckAnalyses(const experiment::JobDocument& document);

// Runs them one after another on a bench of one member and writes their events, and files into the work directory. Throws
// Stopped.
void RunAnalyses(const std::vector<experiment::Analysis>& analyses, const std::string& workdir,
                 const Workbench& bench, EventStream* events);

}  // namespace pelab::trainer
