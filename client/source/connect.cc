#include "client/source/connect.h"

#include <filesystem>
#include <optional>

#include "client/limits.h"
#include "client/source/local.h"
#include "client/source/remote.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/rpc/address.h"
#include "core/rpc/lock_file.h"
#include "migrations/schema.h"

namespace pelab::client {
namespace {

// The address in the lock file of --db; nullopt if nobody holds the database.
absl::StatusOr<std::optional<std::string>> LockedAddress(const GlobalOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::exists(rpc::LockPath(options.database), ignored))
    return std::optional<std::string>();
  return rpc::ReadLiveAddress(options.database);
}

// A coordinator with such an address has a certificate, which names the host as others call it.
bool ListensToOthers(const std::string& address) {
  const auto parsed = rpc::ParseAddress(address);
  return parsed.ok() && !parsed->IsLocal();
}

}  // namespace

absl::StatusOr<bool> IsServed(const GlobalOptions& options) {
  if (!options.server.empty()) return true;
  PELAB_ASSIGN_OR_RETURN(const auto address, LockedAddress(options));
  return address.has_value();
}

absl::StatusOr<std::unique_ptr<Coordinator>> FindCoordinator(const GlobalOptions& options) {
  if (!options.server.empty()) return ConnectTo(options.server, options.security, limits::kConnect);
  auto address = LockedAddress(options);
  if (!address.ok()) return address.status();
  if (!*address) {
    return absl::UnavailableError(Concat(
        "no coordinator: none serves ", options.database,
        ", and neither --server nor PELAB_SERVER is set; start pelab-server, or use pelab run"));
  }
  if ((*address)->empty()) {
    return absl::UnavailableError(Concat("no coordinator: the one of ", options.database,
                                         " is starting or ending; try again"));
  }
  auto coordinator = ConnectTo(**address, options.security, limits::kConnect);
  if (absl::IsUnavailable(coordinator.status()) && ListensToOthers(**address)) {
    return absl::UnavailableError(
        Concat("no coordinator at ", **address, ", where ", options.database,
               " is served: its certificate may have another name; give that one with --server "
               "NAME:PORT, and its authority with --tls-ca FILE"));
  }
  return coordinator;
}

absl::StatusOr<std::unique_ptr<DataSource>> FindSource(const GlobalOptions& options) {
  if (!options.server.empty()) return FindCoordinator(options);
  auto address = LockedAddress(options);
  if (!address.ok()) return address.status();
  if (*address && !(*address)->empty()) {
    auto coordinator = ConnectTo(**address, options.security, limits::kConnect);
    if (coordinator.ok() || coordinator.status().code() != absl::StatusCode::kUnavailable)
      return coordinator;
    // The coordinator ended meanwhile, or does not answer. The file holds everything that was
    // stored.
  }
  std::error_code ignored;
  if (!options.database_given && !std::filesystem::exists(options.database, ignored)) {
    return absl::UnavailableError(Concat(
        "no coordinator and no database: there is no ", options.database,
        " here, and neither --server nor PELAB_SERVER is set; name one with --server or --db"));
  }
  return OpenFile(options.database);
}

absl::Status CheckDatabaseFile(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (status.type() == std::filesystem::file_type::not_found) return absl::OkStatus();
  if (status.type() == std::filesystem::file_type::regular &&
      std::filesystem::file_size(path, ignored) == 0) {
    return absl::OkStatus();  // created, but nothing was ever stored in it
  }
  auto opened = OpenFile(path);
  // A file of an older schema is fine: the coordinator migrates it when it opens it.
  if (opened.ok() || opened.status().GetPayload(migrations::kOlderSchemaPayload)) {
    return absl::OkStatus();
  }
  return opened.status();
}

}  // namespace pelab::client
