// Tells the service manager that started this program (systemd) when it serves, stops and is alive.
// The messages are those of sd_notify(3): datagrams to the socket that $NOTIFY_SOCKET names.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace pelab {

// The manager, if there is one that wants messages. Otherwise every message is OK and does nothing.
// Thread-safe.
class ServiceManager {
 public:
  ServiceManager() = default;  // no manager

  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment, so
  // that programs that this one starts do not speak for it. Call it before the first thread starts.
  // INVALID_ARGUMENT names a variable that cannot be used.
  static absl::StatusOr<ServiceManager> FromEnvironment();

  // The program serves from now on, or stops. `status` is a line for people (`systemctl status`).
  absl::Status Ready(absl::string_view status) const;
  absl::Status Stopping(absl::string_view status) const;
  // The program is alive.
  absl::Status Alive() const;

  // The manager ends the program if it hears no Alive for so long; infinite: it does not wait.
  absl::Duration patience() const { return patience_; }

 private:
  absl::Status Send(const std::string& message) const;

  std::string socket_;  // a path, or "@name" in the abstract namespace; empty: no manager
  absl::Duration patience_ = absl::InfiniteDuration();
};

// Asks a program three times within the manager's patience whether it is alive, and passes that on.
// If a check fails, it logs why and sends nothing, so that the manager restarts a program that
// stays stuck. Has a thread of its own, unless the manager's patience is infinite.
class Watchdog {
 public:
  // `check` runs on the watchdog's thread. It must return within `patience`.
  using Check = std::function<absl::Status(absl::Duration patience)>;

  Watchdog(ServiceManager manager, Check check);
  ~Watchdog();  // waits for a check that is under way
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Run();

  const ServiceManager manager_;
  const Check check_;
  Notification over_;
  std::thread thread_;
};

}  // namespace pelab
