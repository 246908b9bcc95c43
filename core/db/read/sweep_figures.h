// How many sweeps and jobs a database has in each state, for metrics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pelab::db {

class Connection;

struct SweepFigures {
  using ByState = std::map<std::string, std::int64_t>;
  // A sweep that is expanding or active.
  struct Live {
    std::int64_t sweep_id = 0;
    std::string name;
    ByState jobs;
  };
  ByState sweeps;
  // Jobs of all sweeps. A job that several sweeps have counts in each of them.
  ByState jobs;
  std::vector<Live> live;  // the newest first
};

// Keeps one read-only connection open. Not thread-safe.
class SweepFiguresReader {
 public:
  // The errors are those of Reader::Open.
  static absl::StatusOr<std::unique_ptr<SweepFiguresReader>> Open(const std::string& path);
  ~SweepFiguresReader();

  // Reads the counts that the store keeps for each sweep, so that the time depends on the number of
  // sweeps and not on that of jobs. At most `most_live` sweeps are in `live`.
  absl::StatusOr<SweepFigures> Read(std::size_t most_live);

 private:
  explicit SweepFiguresReader(std::unique_ptr<Connection> connection);

  const std::unique_ptr<Connection> connection_;
};

}  // namespace pelab::db
