// Flags that several programs share, so that their names and help texts are the same everywhere.
#pragma once

#include <optional>
#include <string>

#include "core/base/logging.h"
#include "core/rpc/credentials.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::rpc {

// Parses the arguments. nullopt: the program goes on. Otherwise help, the version or an error was
// printed, and the program ends with this status: 2 after an error.
std::optional<int> ParseFlags(CLI::App& app, int argc, char** argv);

// --log-format, --log-level.
void AddLoggingFlags(CLI::App& app, LogOptions* options);
// --trace-file.
void AddTraceFlag(CLI::App& app, std::string* file);
// --tls, --tls-ca, --tls-cert, --tls-key, --token-file, --insecure.
void AddClientSecurityFlags(CLI::App& app, ClientSecurity* security);
// --tls-cert, --tls-key, --tls-client-ca, --token-file, --insecure.
void AddServerSecurityFlags(CLI::App& app, ServerSecurity* security);

}  // namespace pelab::rpc
