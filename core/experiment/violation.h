// Errors in a document or a job, described so that a person can correct them.
#pragma once

#include <string>
#include <string_view>

namespace pelab::experiment {

// One error. `line` and `column` count from 1; both are 0 if the document has no lines (a canonical
// spec, an override).
struct Violation {
  int line = 0;
  int column = 0;
  std::string path;     // "pe[1]", "model.d_model"
  std::string value;    // as written in the document
  std::string allowed;  // in words; may be empty
  std::string message;  // in lower case, complete: unknown pe "alibbi"; known: absolute, alibi, …
};

// "table1.yaml:3:22: unknown pe …"; without the place if line is 0.
std::string Format(const Violation& violation, std::string_view file_name);

}  // namespace pelab::experiment
