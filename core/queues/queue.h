// A queue of a batch system in which workers can be started: the values that people set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace pelab::queues {

struct Queue {
  std::string name;           // lower-case letters, digits and underscores
  absl::Duration time_limit;  // of an allocation
  int max_allocations = 1;    // most allocations that wait, start or run at a time
  int max_waiting = 2;        // most of these that wait
  int slots = 1;              // of the worker of an allocation
  int pack = 1;               // most jobs that a slot trains together (pelab-worker --pack)
  std::string device = "gpu";
  std::uint64_t memory_bytes = 0;                    // of a slot; 0: enough for every job
  absl::Duration idle_exit = absl::Minutes(5);       // of the worker
  absl::Duration start_timeout = absl::Minutes(10);  // from the allocation's start to its hello
  std::vector<std::string> sbatch;                   // further arguments: "--partition=gpu"
  std::string program = "pelab-worker";              // in the PATH of the nodes
  std::string workdir;                               // each worker gets a directory in it
  std::vector<std::string> worker;                   // further arguments: "--token-file", "t"

  bool operator==(const Queue&) const = default;
};

}  // namespace pelab::queues
