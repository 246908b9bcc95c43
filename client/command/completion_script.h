// Completion scripts, made from the command line that CLI11 parses, so that they cannot differ from
// it.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);

}  // namespace pelab::client
