// The trainer's commands, and the one boundary where everything that is thrown becomes an event and an exit status.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/canonical_json.h"
#include "worker/trainer/protocol/arguments.h"

namespace pelab::trainer {

// The whole program: parses, runs, and answers with the exit status (docs/formats.md).
int Main(const std::vector<std::string>& words);

// A job document. Throws TrainerError: kBadSpec with every violation in its text, and kIo for a file that cannot be read.
experiment::JobDocument ParseJobDocument(const std::string& json, const std::string& path);
experiment::JobDocument ReadJobDocument(const std::string& path);

struct JobLedger;

// Trains the jobs and writes their events. Throws whatever goes wrong with all of them; what goes wrong with one is an event
// of it and noted in the ledger.
void Run(const Arguments& arguments, JobLedger* jobs);

// Runs a job's analyses on kept weights and writes their events; otherwise as Run.
void Analyze(const Arguments& arguments, JobLedger* jobs);

// Writes a job's data as safetensors.
void WriteDataset(const Arguments& arguments);

// What this build can run: one JSON object.
std::string CapabilitiesJson();

}  // namespace pelab::trainer
