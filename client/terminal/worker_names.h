// Workers as people see them: by name, with the first characters of an id where names are not enough.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/source/data_source.h"

namespace pelab::client {

// By id: what to call each of `workers`. Those of one name have the beginning of their id added.
std::map<std::string, std::string> WorkerLabels(const std::vector<v1::WorkerRow>& workers);

// The first characters of each id that tell these workers apart; `pelab workers drain` takes them.
std::string ShortId(const v1::WorkerRow& worker, const std::vector<v1::WorkerRow>& workers);

// One line for each worker that holds jobs and has missed its heartbeat: "worker gpu1 not heard of for
// 8 s; its 2 jobs are given away in 12 s".
std::vector<std::string> SilentWorkers(const std::vector<v1::WorkerRow>& workers);

// The names of workers, asked for again where an id is new. Not thread-safe.
class WorkerNames {
 public:
  explicit WorkerNames(DataSource& source) : source_(source) {}
  // The id itself where it cannot be looked up.
  std::string Of(const std::string& worker_id);

 private:
  DataSource& source_;
  std::map<std::string, std::string> labels_;
};

}  // namespace pelab::client
