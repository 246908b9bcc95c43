#include "core/rpc/cli_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/standard_descriptors.h"

namespace pelab::rpc {

std::optional<int> ParseFlags(CLI::App& app, int argc, char** argv) {
  constexpr int kUsageExitCode = 2;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string& name = app.get_name();
    const int code = error.get_exit_code();
    if (code == 0) return FlushStandardOutput(name.c_str(), app.exit(error));
    // If an option is missing, an unknown argument may be its misspelling.
    const bool may_be_extras = code == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
                               code == static_cast<int>(CLI::ExitCodes::RequiredError);
    // In the order in which they were typed; CLI11 turns it round.
    const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
    const std::string message =
        may_be_extras && !extras.empty()
            ? absl::StrCat("unexpected argument", extras.size() > 1 ? "s" : "", ": ",
                           absl::StrJoin(extras, " "))
            : std::string(error.what());
    std::fprintf(stderr, "%s: %s (see %s --help)\n", name.c_str(), message.c_str(), name.c_str());
    return kUsageExitCode;
  }
  return std::nullopt;
}

void AddLoggingFlags(CLI::App& app, LogOptions* options) {
  app.add_option("--log-format", options->format, "Log lines on standard error: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--log-level", options->level, "Least level that is logged")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
}

void AddTraceFlag(CLI::App& app, std::string* file) {
  app.add_option("--trace-file", *file,
                 "Append spans to FILE, in the lines of OTLP JSON that an OpenTelemetry collector "
                 "reads")
      ->type_name("FILE");
}

void AddClientSecurityFlags(CLI::App& app, ClientSecurity* security) {
  app.add_flag("--tls", security->tls,
               "Use TLS on a local address too (elsewhere it is the default)");
  app.add_option("--tls-ca", security->tls_ca_file,
                 "PEM file of the authorities to trust instead of the system's")
      ->type_name("FILE");
  app.add_option("--tls-cert", security->tls_cert_file,
                 "PEM file of your own certificate and its chain, in place of a token")
      ->type_name("FILE");
  app.add_option("--tls-key", security->tls_key_file, "PEM file of that certificate's key")
      ->type_name("FILE");
  app.add_option("--token-file", security->token_file,
                 "File with your token for the coordinator (default: PELAB_TOKEN)")
      ->type_name("FILE");
  app.add_flag("--insecure", security->insecure,
               "Connect without TLS to an address on another machine");
}

void AddServerSecurityFlags(CLI::App& app, ServerSecurity* security) {
  app.add_option("--tls-cert", security->tls_cert_file, "PEM file of the certificate and its chain")
      ->type_name("FILE");
  app.add_option("--tls-key", security->tls_key_file, "PEM file of the certificate's key")
      ->type_name("FILE");
  app.add_option("--tls-client-ca", security->tls_client_ca_file,
                 "PEM file of the authorities whose certificates clients may show instead of a "
                 "token")
      ->type_name("FILE");
  app.add_option("--token-file", security->token_file,
                 "File with a token with which everybody is an operator; better: pelab admin "
                 "principal add")
      ->type_name("FILE");
  app.add_flag("--insecure", security->insecure,
               "Listen without TLS on an address that other machines can reach, and accept "
               "everybody");
}

}  // namespace pelab::rpc
