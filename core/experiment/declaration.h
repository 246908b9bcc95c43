// The declaration of a file that a document names: an encoding (own_encoding.h) or data
// (own_task.h). The coordinator and the CLI know nothing else of the file. The declaration travels
// with a sweep as an override (kFileOverride).
//
// The trainer includes this header, so it needs no YAML and no Abseil. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/experiment/own_encoding.h"
#include "core/experiment/own_task.h"

namespace pelab::experiment {

inline constexpr std::size_t kMaxDeclarationBytes = 64 << 10;

// An override whose field is this and the path that the document names gives what the file of that
// path declares, as ToJson writes it. The document itself stays as it is.
inline constexpr std::string_view kFileOverride = "file:";

using Declaration = std::variant<OwnEncoding, OwnTask>;

struct DeclarationResult {
  Declaration declaration;
  std::string problem;  // for people; empty if and only if `declaration` is valid
};
DeclarationResult ParseDeclaration(std::string_view json);
std::string ToJson(const Declaration& declaration);
const std::string& Sha256Of(const Declaration& declaration);
std::uint64_t BytesOf(const Declaration& declaration);

}  // namespace pelab::experiment
