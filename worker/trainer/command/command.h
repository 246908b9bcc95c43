// The trainer's commands, and the boundary where errors become events and an exit status.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/canonical_json.h"
#include "worker/trainer/protocol/arguments.h"

namespace pelab::trainer {

// The whole program: parses the words, runs the command and returns the exit status
// (docs/formats.md).
int Main(const std::vector<std::string>& words);

// Parse or read a job document. Throw TrainerError: kBadSpec with every violation in its text, kIo
// if a file cannot be read.
experiment::JobDocument ParseJobDocument(const std::string& json, const std::string& path);
experiment::JobDocument ReadJobDocument(const std::string& path);

struct JobLedger;

// Trains the jobs and writes their events. Throws an error that concerns all jobs. If one job
// fails, writes an error event for it and notes this in the ledger.
void Run(const Arguments& arguments, JobLedger* jobs);

// Runs a job's analyses on kept weights and writes their events. Throws if the job fails.
void Analyze(const Arguments& arguments, JobLedger* jobs);

// Writes a job's data as safetensors.
void WriteDataset(const Arguments& arguments);

// Tries the job's encoding on random inputs and prints what holds. False if something does not.
bool CheckEncoding(const Arguments& arguments);

// The features that this build can run, as one JSON object.
std::string CapabilitiesJson();

}  // namespace pelab::trainer
