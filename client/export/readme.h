// README.md and provenance.json of an export, which explain it to readers who do not know pelab.
// Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/export/folder.h"
#include "client/export/own_names.h"
#include "client/export/tables.h"
#include "core/render/json.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// Facts collected while the tables are written.
struct ExportFacts {
  v1::Sweep sweep;
  std::string where;    // the condition that the exported jobs meet; empty: all jobs of the sweep
  std::string version;  // of the exporting program
  std::int64_t exported_at_ms = 0;
  std::map<std::string, std::uint64_t> states;  // jobs by state
  std::vector<std::string> unfinished;          // descriptions of the first jobs that are not
                                                // trained
  // By member of the environment: the values that attempts reported, with the number of attempts
  // for each.
  std::map<std::string, std::map<std::string, std::uint64_t>> environment;
  std::vector<ExportedFile> own_files;
  std::int64_t first_started_at_ms = 0;
  std::int64_t last_ended_at_ms = 0;

  std::uint64_t jobs() const;
  std::uint64_t trained = 0;
};

// The reported members of an attempt's environment: "libtorch", "trainer", "device_name", …
const std::vector<std::string>& EnvironmentMembers();

// The commands that compute everything again from the exported document.
std::vector<std::string> CommandsToRepeat(const v1::Sweep& sweep);

render::Json ProvenanceOf(const ExportFacts& facts);
// `files` are the files besides README.md.
std::string ReadmeOf(const ExportFacts& facts, const std::vector<ExportTable>& tables,
                     const std::vector<WrittenFile>& files);

}  // namespace pelab::client
