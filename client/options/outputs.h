// The values of --output that each command accepts, decided only here. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pelab::client {

// Output forms for papers.
enum class Paper { kSvg, kPdf, kLatex, kMarkdown };

// nullopt for an output that is not for papers, such as "table".
std::optional<Paper> PaperOf(const std::string& output);

// The outputs that `command` ("curves") accepts, in the order in which the help lists them.
std::vector<std::string> OutputsOf(const std::string& command);
// The outputs that at least one command accepts.
std::vector<std::string> AllOutputs();

// The help text of --output: "table, json, jsonl (a row a line) or csv [default: table]".
std::string OutputHelp(const std::vector<std::string>& outputs);

// INVALID_ARGUMENT if the command does not accept the output. The message lists the outputs that it
// accepts, and the commands that accept this one.
absl::Status CheckOutput(const std::string& command, const std::string& output);

}  // namespace pelab::client
