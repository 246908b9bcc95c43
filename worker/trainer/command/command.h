// The trainer's commands, and the one boundary where everything that is thrown becomes an event and an exit status.
#pragma once

#include <string>
#include <vector>

#include "core/spec/canonical.h"
#include "worker/trainer/protocol/arguments.h"

namespace pelab::trainer {

// The whole program: parses, runs, and answers with the exit status (docs/formats.md).
int Main(const std::vector<std::string>& words);

// Reads a job document. Throws TrainerError: kIo, or kBadSpec with every violation in its text.
spec::JobDocument ReadJobDocument(const std::string& path);

// Trains one job and writes its events. Throws whatever goes wrong; `job_id` is set as soon as it is known.
void Run(const Arguments& arguments, int events_fd, std::string* job_id);

// Runs a job's analyses on kept weights and writes their events; otherwise as Run.
void Analyze(const Arguments& arguments, int events_fd, std::string* job_id);

// Writes a job's data as safetensors.
void WriteDataset(const Arguments& arguments);

// What this build can run: one JSON object.
std::string CapabilitiesJson();

}  // namespace pelab::trainer
