// What is wrong in a document or a job, said so that a person can mend it.
#pragma once

#include <string>
#include <string_view>

namespace pelab::experiment {

// One thing that is wrong. `line` and `column` count from 1; they are 0 where the document has no
// lines (a canonical spec, an override).
struct Violation {
  int line = 0;
  int column = 0;
  std::string path;     // "pe[1]", "model.d_model"
  std::string value;    // as written
  std::string allowed;  // in words; may be empty
  std::string message;  // lower-case, complete: unknown pe "alibbi"; known: absolute, alibi, …
};

// "table1.yaml:3:22: unknown pe …"; the place is left out where line is 0.
std::string Format(const Violation& violation, std::string_view file_name);

}  // namespace pelab::experiment
