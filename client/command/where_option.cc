#include "client/command/where_option.h"

#include <CLI/CLI.hpp>

namespace pelab::client {

void AddWhere(CLI::App* app, std::string& where) {
  AddCondition(app, "--where", where,
               "conditions with and, or, not, in (...), = != < <= > >= and ~ for patterns, on "
               "columns of v_jobs, fields of the spec, generalisation_gap, epochs_to(x) and "
               "deposit indices: pe=rope and train.lr>=1e-4 [default: none]")
      ->type_name("CONDITION");
}

CLI::Option* AddCondition(CLI::App* app, const std::string& flag, std::string& condition,
                          const std::string& help) {
  const auto check = [](const std::string& text) {
    const bool empty = text.find_first_not_of(" \t\r\n") == std::string::npos;
    return std::string(empty ? "the condition is empty; write one, as in pe=rope" : "");
  };
  return app->add_option(flag, condition, help)->check(check);
}

}  // namespace pelab::client
