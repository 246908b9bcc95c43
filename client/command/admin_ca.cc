// admin ca: a certificate authority in a folder. It needs no coordinator.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/command/admin_parts.h"
#include "client/terminal/put.h"
#include "core/access/certificate_authority.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using access::IssuedCertificate;
using CertificateKind = access::CertificateRequest::Kind;

struct CaOptions {
  std::string directory;
  std::string authority_name = "pelab CA";
  int authority_days = 3650;
  std::string kind;
  std::vector<std::string> names;
  int days = 365;
  std::string out = ".";
};

int PutCertificate(const Context& context, const IssuedCertificate& issued,
                   const std::string& text) {
  return PutRow(context,
                {{"certificate", issued.certificate_file},
                 {"key", issued.key_file},
                 {"names", issued.names},
                 {"serial", issued.serial},
                 {"not_after_ms", absl::ToUnixMillis(issued.not_after)}},
                text);
}

std::string UntilText(const IssuedCertificate& issued) {
  return Concat("valid until ", render::FormatTime(absl::ToUnixMillis(issued.not_after)));
}

absl::StatusOr<int> InitAuthority(const Context& context, const CaOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const IssuedCertificate made,
                         access::MakeAuthority(options.directory, options.authority_name,
                                               options.authority_days, absl::Now()));
  return PutCertificate(
      context, made,
      Concat("made the authority ", render::Escape(options.authority_name), ", ", UntilText(made),
             "\n", made.certificate_file, ": for everybody who is to trust it\n", made.key_file,
             ": a person who has this file can be any worker, person or server\n"));
}

// What to do with a certificate.
std::string NextStep(const CaOptions& options, CertificateKind kind) {
  if (kind == CertificateKind::kServer) return "";
  const std::string& name = options.names.front();
  if (kind == CertificateKind::kWorker) {
    return Concat("`pelab admin principal add ", name, " --role worker --cert-uri ",
                  access::WorkerUri(name), "` lets it call\n");
  }
  return Concat("`pelab admin principal add ", name, " --role submitter --cert-uri ",
                access::PrincipalUri(name), "` lets it call; so for the other roles\n");
}

absl::StatusOr<int> Issue(const Context& context, const CaOptions& options) {
  const CertificateKind kind = options.kind == "worker"   ? CertificateKind::kWorker
                               : options.kind == "client" ? CertificateKind::kClient
                                                          : CertificateKind::kServer;
  const absl::StatusOr<IssuedCertificate> issued = access::IssueCertificate(
      options.directory, {.kind = kind, .names = options.names, .days = options.days}, options.out,
      absl::Now());
  if (absl::IsNotFound(issued.status())) {
    return absl::NotFoundError(Concat(std::string(issued.status().message()),
                                      "; `pelab admin ca init ", options.directory,
                                      "` makes an authority"));
  }
  if (!issued.ok()) return issued.status();
  return PutCertificate(context, *issued,
                        Concat(issued->certificate_file, ": the certificate and its chain, ",
                               UntilText(*issued), ", for ", Join(issued->names, ", "), "\n",
                               issued->key_file, ": its key\n", NextStep(options, kind)));
}

}  // namespace

void AddAuthorityCommands(Commands& commands, CLI::App* app) {
  CLI::App* ca =
      app->add_subcommand("ca", "certificates for mutual TLS, from an authority in a folder");
  ca->require_subcommand(1);
  ca->footer(
      "Examples:\n"
      "  pelab admin ca init ca\n"
      "  pelab admin ca issue ca server host0.example.org 10.0.0.7\n"
      "  pelab admin ca issue ca worker gpu01 --days 90 --out certificates\n"
      "Nothing is ever overwritten.");
  auto options = std::make_shared<CaOptions>();
  CLI::App* init = ca->add_subcommand("init", "make an authority: DIR/ca.pem and DIR/ca.key");
  init->add_option("DIR", options->directory, "its folder")->required();
  init->add_option("--name", options->authority_name,
                   "the authority's name in certificates [default: pelab CA]");
  init->add_option("--days", options->authority_days, "how long it is valid [default: 3650]")
      ->type_name("N");
  init->callback([&commands, options] {
    commands.chosen = [&commands, options] { return InitAuthority(*commands.context, *options); };
  });
  CLI::App* issue = ca->add_subcommand("issue", "sign a certificate: NAME.pem and NAME.key");
  issue->add_option("DIR", options->directory, "the authority's folder")->required();
  issue
      ->add_option("KIND", options->kind,
                   "worker: of a worker; client: of a principal with another role; server: of the "
                   "coordinator")
      ->required()
      ->check(CLI::IsMember({"worker", "client", "server"}));
  issue
      ->add_option("NAME", options->names,
                   "the principal; for a server, its DNS names and addresses")
      ->required();
  issue->add_option("--days", options->days, "how long it is valid [default: 365]")->type_name("N");
  issue->add_option("--out", options->out, "folder for the two files [default: this one]")
      ->type_name("DIR");
  issue->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Issue(*commands.context, *options); };
  });
}

}  // namespace pelab::client
