// The flag --where, which all commands about jobs share.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

void AddWhere(CLI::App* app, std::string& where);

}  // namespace pelab::client
