// Shell completion scripts, generated from the parsed command line, so that they always match it.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);

}  // namespace pelab::client
