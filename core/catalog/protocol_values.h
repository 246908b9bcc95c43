// The values that a protocol sets, each with one line of reason, and notes for readers who compare
// encodings under a protocol.
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
  std::string_view owner;   // the PE or analysis that has the field, "" for every job
  std::string value;        // "attended; mla: masked"
  std::string_view reason;  // one line
};

// Whether a job must have the protocol's value of this field to get the protocol's name as its
// label.
bool DecidesLabel(const Field& field, std::string_view protocol);

// The fields whose default depends on the protocol, in the order of Fields(). Every other field has
// the same default under all protocols.
std::vector<ProtocolValue> ProtocolValues(std::string_view protocol);

// The properties of a job that NoteOnComparison considers.
struct ComparedJob {
  std::string_view protocol;  // its label: "clean", "custom", …
  std::string_view pe;        // the encoding's name; variants of one encoding count as the same
  double beta1 = 0;           // train.beta1
  double beta2 = 0;

  bool operator==(const ComparedJob& other) const {
    return protocol == other.protocol && pe == other.pe && beta1 == other.beta1 &&
           beta2 == other.beta2;
  }
};

// One or two sentences for readers who compare encodings in these jobs; empty if there is nothing
// to say. At present there is one note: for jobs of at least two encodings under `clean` with that
// protocol's own AdamW betas.
std::string NoteOnComparison(const std::vector<ComparedJob>& jobs);

}  // namespace pelab::catalog
