// The flag --where, which all commands about jobs share, and other flags that take a condition.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pelab::client {

void AddWhere(CLI::App* app, std::string& where);

// Adds a flag that takes a condition. An empty condition is an error of usage.
CLI::Option* AddCondition(CLI::App* app, const std::string& flag, std::string& condition,
                          const std::string& help);

}  // namespace pelab::client
