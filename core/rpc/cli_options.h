// Flags that several programs share, so that their names and help texts are the same everywhere.
#pragma once

#include "core/base/logging.h"
#include "core/rpc/credentials.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::rpc {

// --log-format, --log-level.
void AddLoggingFlags(CLI::App& app, LogOptions* options);
// --tls, --tls-ca, --tls-cert, --tls-key, --token-file, --insecure.
void AddClientSecurityFlags(CLI::App& app, ClientSecurity* security);
// --tls-cert, --tls-key, --tls-client-ca, --token-file, --insecure.
void AddServerSecurityFlags(CLI::App& app, ServerSecurity* security);

}  // namespace pelab::rpc
