// Transfers files through a directory that the coordinator sees too (--artifact-store). Only the
// files' names travel over the network.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/agent/fleet_client.h"

namespace pelab::agent {

// If the directory cannot be used, the file goes through the coordinator instead. Thread-safe.
class StoreTransfer final : public ArtifactTransfer {
 public:
  // `fleet` must outlive it.
  StoreTransfer(std::string directory, FleetClient* fleet);

  absl::Status Put(const ArtifactFile& file, const std::function<bool()>& give_up) override;
  absl::Status Get(const ArtifactFile& file, const std::function<bool()>& give_up) override;

 private:
  // INVALID_ARGUMENT if the text is not a hash.
  absl::StatusOr<std::string> PathOf(const std::string& sha256) const;
  absl::Status PutThere(const ArtifactFile& file, const std::function<bool()>& give_up) const;
  absl::Status GetThere(const ArtifactFile& file, const std::function<bool()>& give_up) const;
  void Complain(const absl::Status& status);

  const std::string directory_;
  FleetClient* const fleet_;
  std::atomic<bool> complained_{false};
};

}  // namespace pelab::agent
