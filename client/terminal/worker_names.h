// Display names of workers: the name, followed by the first characters of the id if names are not
// unique.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/source/data_source.h"

namespace pelab::client {

// A label for each of `workers`, by id. Workers that share a name get the beginning of their id as
// well.
std::map<std::string, std::string> WorkerLabels(const std::vector<v1::WorkerRow>& workers);

// The shortest beginning of the id, of at least 6 characters, that identifies the worker among
// `workers`. `pelab workers drain` accepts it.
std::string ShortId(const v1::WorkerRow& worker, const std::vector<v1::WorkerRow>& workers);

// One line for each worker that holds jobs and has missed its heartbeat: "worker gpu1 not heard of
// for 8 s; its jobs are given away in 12 s".
std::vector<std::string> SilentWorkers(const std::vector<v1::WorkerRow>& workers);

// Worker labels by id, read again when an unknown id appears. Not thread-safe.
class WorkerNames {
 public:
  explicit WorkerNames(DataSource& source) : source_(source) {}
  // Returns the id itself if it cannot be looked up.
  std::string Of(const std::string& worker_id);

 private:
  DataSource& source_;
  std::map<std::string, std::string> labels_;
};

}  // namespace pelab::client
