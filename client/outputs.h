// Which values of --output a command takes: the one place that decides. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pelab::client {

// Forms for a paper.
enum class Paper { kSvg, kPdf, kLatex, kMarkdown };

// nullopt for any other output ("table").
std::optional<Paper> PaperOf(const std::string& output);

// What `command` ("curves") takes, in the order in which the help lists it.
std::vector<std::string> OutputsOf(const std::string& command);
// What any command takes.
std::vector<std::string> AllOutputs();

// "table, json, jsonl (a row a line) or csv [default: table]".
std::string OutputHelp(const std::vector<std::string>& outputs);

// INVALID_ARGUMENT where the command does not take the output: what it takes, and which commands
// have that output.
absl::Status CheckOutput(const std::string& command, const std::string& output);

}  // namespace pelab::client
