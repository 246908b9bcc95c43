// The declaration of a positional encoding from a file: what the coordinator and the CLI know of it
// without LibTorch. It is the extra file `pelab.json` of the TorchScript archive
// (docs/own-encodings.md). The trainer compares it with the job before it calls the module.
//
// The trainer includes this header, so it needs no YAML and no Abseil. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::experiment {

// The name of the declaration among the archive's extra files.
inline constexpr std::string_view kDeclarationName = "pelab.json";
inline constexpr std::size_t kMaxEncodingBytes = 64 << 20;  // of the file
inline constexpr std::size_t kMaxOwnOptions = 32;

struct OwnOption {
  std::string name;
  catalog::FieldType type = catalog::FieldType::kReal;  // kBool, kInt or kReal
  double min = 0;                                       // inclusive range of kInt and kReal
  double max = 0;
  catalog::Value default_value;
  std::string help;

  // The field pe.NAME. It refers to `full_name`, which must outlive it.
  catalog::Field ToField(const std::string& full_name) const;
};

struct OwnEncoding {
  std::string name;
  std::string sha256;  // of the file; empty in the file itself
  std::uint64_t bytes = 0;
  std::vector<std::string> methods;  // in the order of catalog::kOwnMethods
  bool causal_only = false;
  std::vector<OwnOption> options;  // in ascending order of their names
  std::string help;
};

struct OwnEncodingResult {
  OwnEncoding encoding;
  std::string problem;  // for people: what is wrong; empty if and only if `encoding` is valid
};
OwnEncodingResult ParseOwnEncoding(std::string_view json);
std::string ToJson(const OwnEncoding& encoding);

// The text of the field pe.options: the value given for each option, or its default.
std::string OptionsText(const OwnEncoding& encoding, const catalog::Values& given);
// The same text as numbers by name; true and false are 1 and 0. `text` must be one that the field
// accepts.
std::vector<std::pair<std::string, double>> OptionValues(std::string_view text);

}  // namespace pelab::experiment
