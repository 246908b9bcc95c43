// admin principal: adds, lists and changes those who may call the coordinator.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "client/command/admin_parts.h"
#include "client/options/times.h"
#include "client/source/connect.h"
#include "client/terminal/principal_text.h"
#include "client/terminal/put.h"
#include "core/access/role.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct PrincipalOptions {
  std::string name;
  std::string role;
  std::string certificate_uri;
  std::string expires;
  std::string token_out;
  std::optional<double> share;
  std::optional<std::int32_t> max_slots;
  std::optional<std::int64_t> max_queued;
  std::optional<double> gpu_seconds;
  std::optional<std::int32_t> max_priority;
};

// What is set in both is copied; the other fields stay.
void SetLimits(const PrincipalOptions& options, auto& to) {
  if (options.share) to.set_share(*options.share);
  if (options.max_slots) to.set_max_slots(*options.max_slots);
  if (options.max_queued) to.set_max_queued(*options.max_queued);
  if (options.gpu_seconds) to.set_gpu_seconds(*options.gpu_seconds);
  if (options.max_priority) to.set_max_priority(*options.max_priority);
}

absl::StatusOr<v1::AddPrincipalRequest> RequestToAdd(const PrincipalOptions& options) {
  if (!options.certificate_uri.empty() && !options.token_out.empty()) {
    return absl::InvalidArgumentError(
        "--token-out: a principal with --cert-uri has a certificate and gets no token");
  }
  v1::AddPrincipalRequest request;
  request.set_name(options.name);
  request.set_role(*access::ParseRole(options.role));
  request.set_certificate_uri(options.certificate_uri);
  if (!options.expires.empty()) {
    PELAB_ASSIGN_OR_RETURN(const std::int64_t end, ParseExpiry(options.expires, absl::Now()));
    request.set_expires_at_ms(end);
  }
  SetLimits(options, *request.mutable_limits());
  return request;
}

// What is told on standard error.
std::string AddedText(const v1::Principal& added, const TokenOut* out, bool first) {
  const std::int64_t end = added.expires_at_ms();
  std::string text =
      Concat("pelab: added the ", access::NameOf(added.role()), " ", render::Escape(added.name()),
             end == 0 ? "" : Concat(", until ", render::FormatTime(end)), "\n");
  if (!added.certificate_uri().empty()) {
    text += Concat("pelab: it has no token: it calls with a certificate for ",
                   render::Escape(added.certificate_uri()), "\n");
  } else {
    text += Concat("pelab: its token is ",
                   out != nullptr ? Concat("in ", out->path()) : "shown only now",
                   ", and stored nowhere else; it goes into --token-file or PELAB_TOKEN\n");
  }
  if (first) text += "pelab: from now on every call to this coordinator needs a principal\n";
  return text;
}

absl::StatusOr<int> AddPrincipal(const Context& context, const PrincipalOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const v1::AddPrincipalRequest request, RequestToAdd(options));
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const v1::WhoAmIResponse caller, coordinator->WhoAmI());
  PELAB_ASSIGN_OR_RETURN(const auto out, TokenOut::Create(options.token_out));
  PELAB_ASSIGN_OR_RETURN(const v1::PrincipalToken answer, coordinator->AddPrincipal(request));
  return PutToken(context, answer, out.get(),
                  AddedText(answer.principal(), out.get(), !caller.has_principal()));
}

absl::StatusOr<int> ListPrincipals(const Context& context) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const v1::ListPrincipalsResponse answer, coordinator->ListPrincipals());
  const std::vector<v1::Principal> all(answer.principals().begin(), answer.principals().end());
  const absl::Time now = absl::Now();
  return Put(context,
             {.json =
                  [&] {
                    render::Json rows = render::Json::array();
                    for (const v1::Principal& one : all) rows.push_back(PrincipalJson(one, now));
                    return render::Json{{"principals", rows}};
                  },
              .text =
                  [&] {
                    return all.empty()
                               ? "no principals: everybody who reaches the coordinator may do "
                                 "everything\n"
                               : PrincipalTable(all, now, context.style);
                  },
              .rows = "principals",
              .columns = PrincipalColumns()});
}

absl::StatusOr<int> ShowPrincipal(const Context& context, const PrincipalOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const v1::Principal found, FindPrincipal(*coordinator, options.name));
  const absl::Time now = absl::Now();
  return PutRow(context, PrincipalJson(found, now), PrincipalText(found, now, context.style),
                PrincipalColumns());
}

absl::StatusOr<int> SendChange(const Context& context, const v1::ChangePrincipalRequest& request) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const v1::Principal changed, coordinator->ChangePrincipal(request));
  const absl::Time now = absl::Now();
  return PutRow(context, PrincipalJson(changed, now), PrincipalText(changed, now, context.style),
                PrincipalColumns());
}

absl::StatusOr<int> ChangePrincipal(const Context& context, const PrincipalOptions& options) {
  v1::ChangePrincipalRequest request;
  SetLimits(options, request);
  if (!options.role.empty()) request.set_role(*access::ParseRole(options.role));
  if (!options.expires.empty()) {
    PELAB_ASSIGN_OR_RETURN(const std::int64_t end, ParseExpiry(options.expires, absl::Now()));
    request.set_expires_at_ms(end);
  }
  if (request.ByteSizeLong() == 0) {
    return absl::InvalidArgumentError(
        "nothing to change; give --role, --expires, --share, --max-slots, --max-queued, "
        "--gpu-seconds or --max-priority");
  }
  request.set_name(options.name);
  return SendChange(context, request);
}

absl::StatusOr<int> DisablePrincipal(const Context& context, const PrincipalOptions& options) {
  v1::ChangePrincipalRequest request;
  request.set_name(options.name);
  request.set_disabled(true);
  return SendChange(context, request);
}

absl::StatusOr<int> EnablePrincipal(const Context& context, const PrincipalOptions& options) {
  v1::ChangePrincipalRequest request;
  request.set_name(options.name);
  request.set_disabled(false);
  return SendChange(context, request);
}

// CLI11's own checks let NaN pass.
CLI::Validator FiniteFrom0() {
  CLI::Validator validator("");
  validator.operation([](const std::string& text) -> std::string {
    double value = 0;
    const bool ok = absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0;
    return ok ? "" : Concat(text, " is not a number of at least 0");
  });
  return validator;
}

// `unless`: what a limit is if its flag is left out, "[default: 0]".
void AddLimitOptions(CLI::App* app, PrincipalOptions& options, const std::string& unless) {
  app->add_option(
         "--share", options.share,
         Concat("among jobs of one priority, twice the share gets twice the slots; 0: as 1 ",
                unless))
      ->check(FiniteFrom0())
      ->type_name("N");
  app->add_option("--max-slots", options.max_slots,
                  Concat("jobs of its sweeps that run at a time; 0: no limit ", unless))
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app->add_option("--max-queued", options.max_queued,
                  Concat("jobs of its sweeps that wait; a further submission is refused; 0: no "
                         "limit ",
                         unless))
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app->add_option(
         "--gpu-seconds", options.gpu_seconds,
         Concat("once its jobs have used them, no further one starts; 0: no limit ", unless))
      ->check(FiniteFrom0())
      ->type_name("N");
  app->add_option("--max-priority", options.max_priority,
                  Concat("of its sweeps; above 0 is otherwise for operators ", unless))
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
}

CLI::Option* AddRoleOption(CLI::App* app, PrincipalOptions& options) {
  return app
      ->add_option("--role", options.role,
                   "reader: looks at everything; submitter: also submits sweeps and changes its "
                   "own; operator: changes everything, principals too; worker: runs jobs; scaler: "
                   "pelab-scale, which takes its queues from the coordinator")
      ->check(CLI::IsMember(kRoleNames))
      ->type_name("ROLE");
}

using PrincipalVerb = absl::StatusOr<int> (*)(const Context&, const PrincipalOptions&);

}  // namespace

void AddPrincipalCommands(Commands& commands, CLI::App* app) {
  CLI::App* principal =
      app->add_subcommand("principal", "people, programs and workers that may call");
  principal->require_subcommand(1);
  principal->footer(
      "Examples:\n"
      "  pelab admin principal list\n"
      "  pelab admin principal add alice --role submitter > alice.token\n"
      "  pelab admin principal disable alice");
  auto options = std::make_shared<PrincipalOptions>();
  const auto add_command = [&](const char* name, const char* help, PrincipalVerb verb) {
    CLI::App* command = principal->add_subcommand(name, help);
    command->add_option("NAME", options->name, "1 to 64 letters, digits, \".\", \"_\" or \"-\"")
        ->required();
    command->callback([&commands, options, verb] {
      commands.chosen = [&commands, options, verb] { return verb(*commands.context, *options); };
    });
    return command;
  };
  CLI::App* add = add_command("add", "add a principal and print its token", AddPrincipal);
  add->footer(
      "Examples:\n"
      "  pelab admin principal add me --role operator --token-out me.token\n"
      "  pelab admin principal add alice --role submitter --expires 90d > alice.token\n"
      "  pelab admin principal add gpu01 --role worker --cert-uri pelab://worker/gpu01\n"
      "The token is alone on standard output. The coordinator stores only its SHA-256.");
  AddRoleOption(add, *options)->required();
  add->add_option("--cert-uri", options->certificate_uri,
                  "it has a certificate with this URI instead of a token: pelab://worker/NAME, or "
                  "pelab://principal/NAME for other roles")
      ->type_name("URI");
  AddExpiresOption(add, options->expires, "never");
  AddTokenOutOption(add, options->token_out);
  AddLimitOptions(add, *options, "[default: 0]");

  principal->add_subcommand("list", "all principals, and what they use")->callback([&commands] {
    commands.chosen = [&commands] { return ListPrincipals(*commands.context); };
  });
  add_command("show", "one principal", ShowPrincipal);
  CLI::App* change = add_command("change",
                                 "change the role, the end or the limits of one; what "
                                 "is left out stays",
                                 ChangePrincipal);
  change->footer(
      "Examples:\n"
      "  pelab admin principal change alice --share 2 --max-slots 8\n"
      "  pelab admin principal change alice --expires 30d");
  AddRoleOption(change, *options);
  AddExpiresOption(change, options->expires, "as before");
  AddLimitOptions(change, *options, "[default: as before]");
  add_command("disable", "refuse its calls; its open calls end within two seconds",
              DisablePrincipal);
  add_command("enable", "accept its calls again", EnablePrincipal);
}

}  // namespace pelab::client
