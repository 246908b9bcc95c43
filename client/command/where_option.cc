#include "client/command/where_option.h"

#include <CLI/CLI.hpp>

namespace pelab::client {

void AddWhere(CLI::App* app, std::string& where) {
  app->add_option("--where", where,
                  "conditions with and, or, not, in (...), = != < <= > >= and ~ for patterns, on "
                  "columns of v_jobs, fields of the spec, generalisation_gap, epochs_to(x) and "
                  "deposit indices: pe=rope and train.lr>=1e-4 [default: none]")
      ->type_name("CONDITION");
}

}  // namespace pelab::client
