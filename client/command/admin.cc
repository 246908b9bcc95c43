// admin: who may call the coordinator. Here: whoami, and what the parts of admin share.
#include <CLI/CLI.hpp>

#include "absl/time/clock.h"
#include "client/command/admin_parts.h"
#include "client/source/connect.h"
#include "client/terminal/principal_text.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

absl::StatusOr<int> WhoAmI(const Context& context) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const v1::WhoAmIResponse answer, coordinator->WhoAmI());
  const absl::Time now = absl::Now();
  const bool known = answer.has_principal() && !answer.principal().name().empty();
  const render::Json principal = known ? PrincipalJson(answer.principal(), now) : nullptr;
  return Put(
      context,
      {.json =
           [&] {
             return render::Json{{"principal", principal}};
           },
       .text =
           [&] {
             return known ? PrincipalText(answer.principal(), now, context.style)
                          : Concat(render::Escape(coordinator->Description()),
                                   " asks nobody who they are: everybody who reaches it may do "
                                   "everything\n");
           },
       .columns = PrincipalColumns(),
       .csv = [&] { return known ? render::Json::array({principal}) : render::Json::array(); }});
}

std::string AnotherToken(const std::string& name) {
  return Concat("; its token is lost: `pelab admin token rotate ", name, "` gives another one");
}

}  // namespace

void AddExpiresOption(CLI::App* app, std::string& expires, const char* if_left_out) {
  app->add_option(
         "--expires", expires,
         Concat("how long it may call from now on, such as 90d or 12h, or never [default: ",
                if_left_out, "]"))
      ->type_name("TIME");
}

void AddTokenOutOption(CLI::App* app, std::string& token_out) {
  app->add_option("--token-out", token_out,
                  "new file for the token, which only you can read [default: standard output]")
      ->type_name("FILE");
}

absl::StatusOr<v1::Principal> FindPrincipal(Coordinator& coordinator, const std::string& name) {
  PELAB_ASSIGN_OR_RETURN(const v1::ListPrincipalsResponse all, coordinator.ListPrincipals());
  for (const v1::Principal& principal : all.principals()) {
    if (principal.name() == name) return principal;
  }
  return absl::NotFoundError(
      Concat("no principal \"", name, "\"; pelab admin principal list shows all"));
}

absl::StatusOr<int> PutToken(const Context& context, const v1::PrincipalToken& answer,
                             TokenOut* out, const std::string& told) {
  const std::string& name = answer.principal().name();
  if (out != nullptr) {
    if (const absl::Status status = out->Write(answer.token()); !status.ok()) {
      return absl::Status(status.code(), Concat(std::string(status.message()), AnotherToken(name)));
    }
  }
  const bool to_output = out == nullptr && !answer.token().empty();
  if (context.output() == Output::kTable) {
    if (to_output) context.out(Concat(render::Escape(answer.token()), "\n"));
    context.err(told);
  } else {
    render::Json row = PrincipalJson(answer.principal(), absl::Now());
    row["token"] = to_output ? render::Json(answer.token()) : render::Json(nullptr);
    row["token_file"] = out != nullptr ? render::Json(out->path()) : render::Json(nullptr);
    PutRow(context, row, "");
  }
  if (to_output && context.out_failed && context.out_failed()) {
    return absl::InternalError(Concat("cannot write to standard output", AnotherToken(name)));
  }
  return kExitOk;
}

void AddAdmin(Commands& commands) {
  CLI::App* app = AddCommand(
      commands, "admin", "who may call the coordinator: principals, tokens, certificates",
      "  pelab admin principal add me --role operator --token-out me.token\n"
      "  pelab admin whoami --token-file me.token\n"
      "  pelab admin principal list --token-file me.token\n"
      "  pelab admin token rotate me --token-file me.token > new.token\n"
      "  pelab admin ca init ca\n"
      "The first principal must be an operator. From then on every call needs a principal: a token "
      "(--token-file or PELAB_TOKEN) or a certificate.");
  app->require_subcommand(1);
  app->fallthrough();
  app->add_subcommand("whoami", "the principal of your token or certificate, and what it may use")
      ->callback(
          [&commands] { commands.chosen = [&commands] { return WhoAmI(*commands.context); }; });
  AddPrincipalCommands(commands, app);
  AddTokenCommands(commands, app);
  AddAuthorityCommands(commands, app);
}

}  // namespace pelab::client
