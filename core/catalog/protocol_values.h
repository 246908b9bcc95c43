// What a protocol sets and why: the values of every field that a protocol decides, each with one
// line of reason, and what a reader has to know who compares encodings under a protocol.
//
// Standard library only; parses as C++17. Constants and pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::catalog {

struct ProtocolValue {
  std::string_view field;   // full name: "model.mask"
  std::string_view owner;   // the PE or analysis that has it, "" for every job
  std::string value;        // "attended; mla: masked"
  std::string_view reason;  // one line
};

// Whether a job must have the protocol's value of this field to carry the protocol's name.
bool DecidesLabel(const Field& field, std::string_view protocol);

// The fields whose default depends on the protocol, in the order of Fields(). Every other field has
// one default under all protocols.
std::vector<ProtocolValue> ProtocolValues(std::string_view protocol);

// What the note below looks at in a job.
struct ComparedJob {
  std::string_view protocol;  // its label: "clean", "custom", …
  std::string_view pe;        // the encoding's name: variants of one are not told apart
  double beta1 = 0;           // train.beta1
  double beta2 = 0;

  bool operator==(const ComparedJob& other) const {
    return protocol == other.protocol && pe == other.pe && beta1 == other.beta1 &&
           beta2 == other.beta2;
  }
};

// A sentence or two for whoever compares encodings in these jobs; empty where there is nothing to
// say. Today: jobs under `clean` with AdamW's betas as that protocol keeps them, of two encodings
// or more.
std::string NoteOnComparison(const std::vector<ComparedJob>& jobs);

}  // namespace pelab::catalog
