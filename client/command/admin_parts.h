// The parts of `pelab admin`: each adds its commands below `app`.
#pragma once

#include "client/command/commands.h"
#include "client/options/token_out.h"
#include "client/source/data_source.h"
#include "pelab/v1/admin.pb.h"

namespace pelab::client {

void AddPrincipalCommands(Commands& commands, CLI::App* app);  // principal add, list, show, …
void AddTokenCommands(Commands& commands, CLI::App* app);      // token rotate
void AddAuthorityCommands(Commands& commands, CLI::App* app);  // ca init, ca issue

// Adds --expires and --token-out.
void AddExpiresOption(CLI::App* app, std::string& expires, const char* if_left_out);
void AddTokenOutOption(CLI::App* app, std::string& token_out);

// The principal of that name, from the coordinator's list; NOT_FOUND if there is none.
absl::StatusOr<v1::Principal> FindPrincipal(Coordinator& coordinator, const std::string& name);

// Writes the answer of a call that makes a token. The token goes to `out`, or, if that is null, to
// standard output, where it is alone; with --output json and the like it is a member of the row.
// `told` is for people and goes to standard error. If the token cannot be written, the error says
// how to get another one.
absl::StatusOr<int> PutToken(const Context& context, const v1::PrincipalToken& answer,
                             TokenOut* out, const std::string& told);

}  // namespace pelab::client
