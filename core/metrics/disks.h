// The free space of the disks that hold certain files.
#pragma once

#include <string>
#include <vector>

#include "core/metrics/scrape.h"

namespace pelab::metrics {

// The directory at which the file system of `path` is mounted, with links resolved: "/srv". Empty
// if there is no such path. Thread-safe.
std::string MountOf(const std::string& path);

// pelab_disk_free_bytes: what processes without privileges may still write, one sample for each
// file system that holds one of `paths`. Paths that do not exist are left out.
void AddFreeBytes(Scrape& scrape, const std::vector<std::string>& paths);

}  // namespace pelab::metrics
