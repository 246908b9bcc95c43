// The memory and threads of this process, as the kernel counts them.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace pelab {

inline std::int64_t ResidentBytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

inline int Threads() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int threads = 0;
    if (word == "Threads:" && status >> threads) return threads;
  }
  return 0;
}

}  // namespace pelab
