// Checks the promises of a list of violations.
#pragma once

#include <string>
#include <vector>

#include "core/base/utf8.h"
#include "core/experiment/violation.h"
#include "tests/fuzz/fuzz.h"

namespace pelab::fuzz {

inline void CheckViolations(const std::vector<experiment::Violation>& violations) {
  Require(violations.size() <= 100, "at most 100 violations");
  for (const experiment::Violation& violation : violations) {
    RequireSentence(violation.message);
    Require(violation.message.size() < 4096, "a message is short", violation.message);
    Require(violation.message.find('\n') == std::string::npos, "a message is one line",
            violation.message);
    Require(violation.line >= 0 && violation.column >= 0, "a place is not negative");
    for (const auto* text : {&violation.path, &violation.value, &violation.allowed}) {
      Require(IsUtf8(*text), "a violation is UTF-8", *text);
    }
  }
}

}  // namespace pelab::fuzz
