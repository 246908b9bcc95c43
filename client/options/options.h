// The options and outputs that every command receives.
#pragma once

#include <functional>
#include <string>

#include "client/terminal/style.h"
#include "core/rpc/credentials.h"

namespace pelab::client {

inline constexpr char kDefaultDatabase[] = "pelab.db";

// Exit statuses.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;       // wrong usage or invalid input
inline constexpr int kExitIncomplete = 3;  // finished, but some jobs did not succeed
inline constexpr int kExitNoCoordinator = 4;
inline constexpr int kExitInterrupted = 130;

enum class Output { kTable, kJson, kCsv };

struct GlobalOptions {
  std::string server;  // --server or PELAB_SERVER
  std::string database = kDefaultDatabase;
  bool database_given = false;
  std::string output_name = "table";
  bool no_color = false;
  std::string trace_file;  // of spans; empty: none
  rpc::ClientSecurity security;

  bool json_lines() const { return output_name == "jsonl"; }
  Output output() const {  // jsonl is JSON, laid out differently
    return output_name == "json" || json_lines() ? Output::kJson
           : output_name == "csv"                ? Output::kCsv
                                                 : Output::kTable;
  }
};

// The options and the outputs of one run of the program.
struct Context {
  GlobalOptions options;
  render::Style style;
  bool stdout_is_terminal = false;
  std::function<void(const std::string&)> out;  // standard output
  // Whether writing to standard output has failed; streaming commands can then stop. If it is
  // empty, writing never fails.
  std::function<bool()> out_failed;
  std::function<void(const std::string&)> err;  // standard error, for messages to people

  Output output() const { return options.output(); }
};

}  // namespace pelab::client
