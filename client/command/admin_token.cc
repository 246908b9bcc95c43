// admin token: a new token for a principal.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "client/command/admin_parts.h"
#include "client/options/times.h"
#include "client/source/connect.h"
#include "client/terminal/principal_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct RotateOptions {
  std::string name;
  std::string expires;
  std::string token_out;
  bool revoke = false;
};

// When the principal ends from now on. Without --expires, its end stays; a principal that has ended
// would get a token that nobody can use.
absl::StatusOr<std::int64_t> EndFromNow(Coordinator& coordinator, const RotateOptions& options) {
  const absl::Time now = absl::Now();
  if (!options.expires.empty()) return ParseExpiry(options.expires, now);
  PELAB_ASSIGN_OR_RETURN(const v1::Principal principal, FindPrincipal(coordinator, options.name));
  const std::int64_t end = principal.expires_at_ms();
  if (end == 0 || end > absl::ToUnixMillis(now)) return end;
  return absl::FailedPreconditionError(Concat(options.name, " has expired at ",
                                              render::FormatTime(end),
                                              "; give --expires, such as 90d or never"));
}

absl::StatusOr<int> RotateToken(const Context& context, const RotateOptions& options) {
  if (!options.expires.empty()) {  // a mistake is refused before anything is asked or made
    PELAB_RETURN_IF_ERROR(ParseExpiry(options.expires, absl::Now()).status());
  }
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const auto out, TokenOut::Create(options.token_out));
  v1::RotateTokenRequest request;
  request.set_name(options.name);
  request.set_revoke_previous(options.revoke);
  PELAB_ASSIGN_OR_RETURN(const std::int64_t end, EndFromNow(*coordinator, options));
  request.set_expires_at_ms(end);
  PELAB_ASSIGN_OR_RETURN(const v1::PrincipalToken answer, coordinator->RotateToken(request));
  return PutToken(
      context, answer, out.get(),
      Concat("pelab: ", render::Escape(answer.principal().name()), " has a new token, ",
             out ? Concat("in ", options.token_out) : "which is shown only now",
             options.revoke
                 ? "; its earlier tokens are not valid any more\n"
                 : "; the previous one stays valid for an hour, or until --revoke ends it\n"));
}

}  // namespace

void AddTokenCommands(Commands& commands, CLI::App* app) {
  CLI::App* token = app->add_subcommand("token", "new tokens");
  token->require_subcommand(1);
  CLI::App* rotate = token->add_subcommand("rotate", "give a principal a new token and print it");
  rotate->footer(
      "Examples:\n"
      "  pelab admin token rotate alice --expires 90d --token-out alice.token\n"
      "  pelab admin token rotate gpu01 --revoke > gpu01.token\n"
      "The token is alone on standard output.");
  auto options = std::make_shared<RotateOptions>();
  rotate->add_option("NAME", options->name, "the principal")->required();
  AddExpiresOption(rotate, options->expires, "as before");
  rotate->add_flag("--revoke", options->revoke,
                   "end the previous token at once (it was stolen) instead of in an hour");
  AddTokenOutOption(rotate, options->token_out);
  rotate->callback([&commands, options] {
    commands.chosen = [&commands, options] { return RotateToken(*commands.context, *options); };
  });
}

}  // namespace pelab::client
