#include "server/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/rpc/cli_options.h"

namespace pelab {
namespace {

constexpr char kExamples[] = R"(Examples:
  pelab-server
      serves ./pelab.db on 127.0.0.1:7470
  pelab-server --db runs/pelab.db --listen unix:/run/user/1000/pelab.sock
      serves it on a Unix socket
  pelab-server --listen 0.0.0.0:7470 --tls-cert cert.pem --tls-key key.pem --token-file token
      serves other machines over TLS; every call must carry the token

  pelab-server --http 127.0.0.1:7480
      also shows its sweeps live in a browser on this machine, at http://127.0.0.1:7480/; from
      another machine, first run ssh -L 7480:127.0.0.1:7480 HOST

  pelab-server --db /var/lib/pelab/pelab.db --backup-dir /backup/pelab --keep 7d,4w
      makes a backup every 24 hours; keeps the newest of each of 7 days and of each of 4 weeks

  pelab-server --db /var/lib/pelab/pelab.db --artifact-store /shared/pelab
      keeps files on a disk that the workers see; start them with the same --artifact-store

Files: FILE is the SQLite database. FILE.artifacts/ holds weights and checkpoints, named by their
SHA-256; with --artifact-store it is a link to DIR, and each database needs its own DIR. FILE.lock
names the address at which the database is served. If the quota is used up, checkpoints are deleted
to make room for weights. A file that nothing refers to any more is removed. SIGTERM and SIGINT end
the server cleanly; workers continue training and connect again.
)";

struct BackupWords {  // empty: not given
  std::string directory;
  std::string every;
  std::string keep;
};

struct NotifyWords {  // empty: not given
  std::string url;
  std::string secret_file;
};

struct Words {
  std::vector<std::string> listen = {"127.0.0.1:7470"};
  std::string heartbeat = "5s";
  std::string lease = "20s";
  std::string attempt_silence = "24h";
  std::string quota = "20GiB";
  std::string grace = "15m";
  std::string store;
  std::string http;
  BackupWords backups;
  NotifyWords notify;
  std::string health;
};

absl::Status ReadBackups(const BackupWords& words, CoordinatorOptions& options) {
  if (words.directory.empty()) {
    if (words.every.empty() && words.keep.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        words.every.empty() ? "--keep" : "--backup-every", " is only allowed with --backup-dir"));
  }
  backups::BackupSettings settings{.directory = words.directory};
  if (!words.every.empty()) {
    PELAB_ASSIGN_OR_RETURN(settings.every, ParseDays(words.every, "--backup-every"));
  }
  if (settings.every < backups::kMostOften) {
    return absl::InvalidArgumentError(
        absl::StrCat("--backup-every ", words.every, " is too short; allowed: at least 1s"));
  }
  if (!words.keep.empty()) {
    PELAB_ASSIGN_OR_RETURN(settings.keep, backups::ParseRetention(words.keep));
  }
  options.backups = std::move(settings);
  return absl::OkStatus();
}

absl::Status ReadNotify(const NotifyWords& words, CoordinatorOptions& options) {
  if (words.url.empty()) {
    if (words.secret_file.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--notify-secret-file is only allowed with --notify");
  }
  PELAB_ASSIGN_OR_RETURN(notify::Address address, notify::ParseAddress(words.url));
  options.notify =
      notify::NotifySettings{.address = std::move(address), .secret_file = words.secret_file};
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> ParseSilence(const std::string& text) {
  if (text == "off") return absl::InfiniteDuration();
  auto time = ParseDuration(text, "--attempt-silence");
  if (time.ok()) return time;
  return absl::InvalidArgumentError(absl::StrCat("invalid --attempt-silence \"", text,
                                                 "\"; allowed: a time such as 12h or 24h, or off "
                                                 "(no limit)"));
}

absl::Status Read(const Words& words, CoordinatorOptions& options) {
  for (const std::string& text : words.listen) {
    PELAB_ASSIGN_OR_RETURN(rpc::Address address, rpc::ParseAddress(text, rpc::PortZero::kAllowed));
    options.listen.push_back(std::move(address));
  }
  if (!words.http.empty()) {
    PELAB_ASSIGN_OR_RETURN(options.http, rpc::ParseAddress(words.http, rpc::PortZero::kAllowed));
  } else if (!options.http_hosts.empty()) {
    return absl::InvalidArgumentError("--http-host is only allowed with --http");
  } else if (options.http_insecure) {
    return absl::InvalidArgumentError("--http-insecure is only allowed with --http");
  } else if (options.http_write) {
    return absl::InvalidArgumentError("--http-write is only allowed with --http");
  } else if (options.metrics_sweeps) {
    return absl::InvalidArgumentError("--metrics-sweeps is only allowed with --http");
  }
  if (!words.health.empty()) {
    PELAB_ASSIGN_OR_RETURN(options.health,
                           rpc::ParseAddress(words.health, rpc::PortZero::kAllowed));
  }
  if (!options.http_token_file.empty() && !options.http_write) {
    return absl::InvalidArgumentError("--http-token-file is only allowed with --http-write");
  }
  PELAB_ASSIGN_OR_RETURN(options.heartbeat, ParseDuration(words.heartbeat, "--heartbeat"));
  PELAB_ASSIGN_OR_RETURN(options.lease, ParseDuration(words.lease, "--lease"));
  PELAB_ASSIGN_OR_RETURN(options.attempt_silence, ParseSilence(words.attempt_silence));
  PELAB_ASSIGN_OR_RETURN(options.artifact_quota, ParseByteSize(words.quota, "--artifact-quota"));
  PELAB_ASSIGN_OR_RETURN(options.artifact_grace, ParseDuration(words.grace, "--artifact-grace"));
  if (!words.store.empty()) options.artifact_store = store::SharedStore{words.store};
  PELAB_RETURN_IF_ERROR(ReadBackups(words.backups, options));
  PELAB_RETURN_IF_ERROR(ReadNotify(words.notify, options));
  if (options.lease < 2 * options.heartbeat) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lease ", words.lease, " is too short; allowed: at least twice --heartbeat ",
                     words.heartbeat));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<int> ParseCommandLine(int argc, char** argv, ServerOptions& options) {
  CLI::App app(
      "The coordinator of pelab: keeps sweeps in an SQLite database, gives their jobs to "
      "workers and answers queries.",
      "pelab-server");
  app.footer(kExamples);
  app.set_version_flag("--version", "pelab-server " + VersionText());
  Words words;
  app.add_option("--db", options.coordinator.database, "the database; created if it is missing")
      ->capture_default_str()
      ->type_name("FILE");
  app.add_option("--listen", words.listen, "unix:PATH or HOST:PORT; may be repeated; port 0: any")
      ->capture_default_str()
      ->type_name("ADDR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--http", words.http,
                 "also serve pages, a JSON API and metrics on HOST:PORT; port 0: any free port")
      ->type_name("ADDR");
  app.add_option("--http-host", options.coordinator.http_hosts,
                 "accept requests to this host name too, such as a proxy's; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--http-insecure", options.coordinator.http_insecure,
               "let other machines reach --http, although it has neither TLS nor a password: for "
               "networks where only a proxy or a scraper can");
  app.add_flag("--http-write", options.coordinator.http_write,
               "let people who have the token change sweeps on the pages (pause, resume, cancel, "
               "retry, extend, priority, note)");
  app.add_option("--http-token-file", options.coordinator.http_token_file,
                 "file with the token for --http-write (default: that of --token-file)")
      ->type_name("FILE");
  app.add_flag(
      "--metrics-sweeps", options.coordinator.metrics_sweeps,
      "give each live sweep samples of its own on /metrics of --http, at most 200 of them");
  app.add_option("--health", words.health,
                 "also answer gRPC health checks, and nothing else, without TLS on HOST:PORT, for "
                 "probes that have no TLS; port 0: any free port")
      ->type_name("ADDR");
  app.add_option("--heartbeat", words.heartbeat, "interval of the workers' heartbeats")
      ->capture_default_str()
      ->type_name("TIME");
  app.add_option("--lease", words.lease,
                 "time after which the jobs of a silent worker are given to others")
      ->capture_default_str()
      ->type_name("TIME");
  app.add_option("--attempt-silence", words.attempt_silence,
                 "time after which a running job is given to another worker if its own reports "
                 "nothing about it; off: never")
      ->capture_default_str()
      ->type_name("TIME");
  app.add_option("--artifact-quota", words.quota, "disk space for FILE.artifacts/")
      ->capture_default_str()
      ->type_name("SIZE");
  app.add_option(
         "--artifact-store", words.store,
         "keep these files in DIR, a disk that the workers see under the same or another path")
      ->type_name("DIR");
  app.add_option("--artifact-grace", words.grace,
                 "age at which a file is removed that nothing refers to any more")
      ->capture_default_str()
      ->type_name("TIME");
  app.add_option("--backup-dir", words.backups.directory,
                 "make backups in DIR, which must exist; best on another disk")
      ->type_name("DIR");
  app.add_option("--backup-every", words.backups.every,
                 "time from one backup to the next (default: 24h)")
      ->type_name("TIME");
  app.add_option("--keep", words.backups.keep,
                 "which backups stay: the newest N, those of the last N days (Nd) or weeks (Nw) "
                 "that have one (default: 7d,4w)")
      ->type_name("RULES");
  app.add_option("--notify", words.notify.url,
                 "POST a JSON message to this http or https address when a sweep ends, when its "
                 "first job fails, when a worker is put into quarantine, when a budget stops pelab "
                 "settle, and when a principal has used its GPU seconds")
      ->type_name("URL");
  app.add_option("--notify-secret-file", words.notify.secret_file,
                 "file with the secret that signs these messages (X-Pelab-Signature)")
      ->type_name("FILE");
  rpc::AddTraceFlag(app, &options.coordinator.trace_file);
  app.add_flag("--admit-everybody", options.coordinator.admit_everybody,
               "only with Unix sockets: everybody who can open it may do everything, whatever "
               "principals the database has");
  app.add_option("--parent-fd", options.parent_fd,
                 "end when this inherited descriptor reaches its end")
      ->type_name("N");
  rpc::AddServerSecurityFlags(app, &options.coordinator.security);
  rpc::AddLoggingFlags(app, &options.log);
  if (const auto status = rpc::ParseFlags(app, argc, argv)) return status;
  if (const absl::Status status = Read(words, options.coordinator); !status.ok()) {
    std::fprintf(stderr, "pelab-server: %s\n", Escape(std::string(status.message())).c_str());
    return 2;
  }
  return std::nullopt;
}

}  // namespace pelab
