#include "core/metrics/disks.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

namespace pelab::metrics {
namespace {

namespace fs = std::filesystem;

std::optional<dev_t> DeviceOf(const fs::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_dev;
}

}  // namespace

std::string MountOf(const std::string& path) {
  std::error_code error;
  fs::path mount = fs::canonical(path, error);
  const std::optional<dev_t> device = error ? std::nullopt : DeviceOf(mount);
  if (!device) return "";
  while (mount.has_relative_path() && DeviceOf(mount.parent_path()) == device) {
    mount = mount.parent_path();
  }
  return mount.string();
}

void AddFreeBytes(Scrape& scrape, const std::vector<std::string>& paths) {
  auto family = scrape.Gauge(
      "pelab_disk_free_bytes",
      "Free bytes of the file system, named by where it is mounted, that holds pelab's files.");
  std::set<std::string> mounts;
  for (const std::string& path : paths) {
    const std::string mount = MountOf(path);
    if (mount.empty() || !mounts.insert(mount).second) continue;
    std::error_code error;
    const fs::space_info space = fs::space(path, error);
    if (!error) family.Add(static_cast<double>(space.available), {{"mount", mount}});
  }
}

}  // namespace pelab::metrics
