// Code that the run and analyze commands share: process settings, data and model on their device,
// and the analyses.
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

// Creates the work directories and sets up memory, threads and device. Throws TrainerError: kIo, or
// kBadSpec if the device is not available.
void PrepareProcess(const Arguments& arguments);

// The data and model of a job, or of several members of one configuration (parameters/members.h).
// The members below are constructed in this order because each needs the earlier ones. The jobs
// must outlive the bench. A bench cannot be copied or moved, because its parts refer to one
// another.
struct Workbench {
  Workbench(const std::vector<const experiment::Job*>& jobs,
            const std::vector<const Dataset*>& datasets, at::Device device);
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  const experiment::Job& job;  // the first job
  LabelSpace labels;
  DeviceData data;
  ParameterSet parameters;
  Decoder decoder;
};

// The number of parameters of the job's model.
std::int64_t CountParameters(const experiment::Job& job, const Dataset& data);

// Throws TrainerError(kBadSpec) if this trainer cannot run an analysis on the job. Called before
// anything is computed.
void CheckAnalyses(const experiment::JobDocument& document);

// Runs the analyses one after another on a bench of one member. Writes their events, and their
// files into the work directory. Throws Stopped.
void RunAnalyses(const std::vector<experiment::Analysis>& analyses, const std::string& workdir,
                 const Workbench& bench, EventStream* events);

}  // namespace pelab::trainer
