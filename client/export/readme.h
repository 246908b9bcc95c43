// README.md and provenance.json of an export: what a stranger has to know of it. Pure functions:
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/export/folder.h"
#include "client/export/tables.h"
#include "core/render/json.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// What was seen while the tables were written.
struct ExportFacts {
  v1::Sweep sweep;
  std::string where;    // the condition that the jobs meet; empty: all of the sweep's
  std::string version;  // of the program that exports
  std::int64_t exported_at_ms = 0;
  std::map<std::string, std::uint64_t> states;  // jobs by state
  std::vector<std::string> unfinished;          // the first of those that are not trained, in words
  // How often each was said, by attempts that trained or analysed.
  std::map<std::string, std::map<std::string, std::uint64_t>> environment;  // by member
  std::int64_t first_started_at_ms = 0;
  std::int64_t last_ended_at_ms = 0;

  std::uint64_t jobs() const;
  std::uint64_t trained = 0;
};

// The member that an environment says something by: "libtorch", "trainer", "device_name", …
const std::vector<std::string>& EnvironmentMembers();

// The commands that compute everything again, beginning from the exported document.
std::vector<std::string> CommandsToRepeat(const v1::Sweep& sweep);

render::Json ProvenanceOf(const ExportFacts& facts);
// `files` are those that are there besides the README itself.
std::string ReadmeOf(const ExportFacts& facts, const std::vector<ExportTable>& tables,
                     const std::vector<WrittenFile>& files);

}  // namespace pelab::client
