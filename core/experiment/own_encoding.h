// The declaration of a positional encoding from a file: what the coordinator and the CLI know of it
// without LibTorch. It is the extra file `pelab.json` of the TorchScript archive
// (docs/own-encodings.md). The trainer compares it with the job before it calls the module.
//
// The trainer includes this header, so it needs no YAML and no Abseil. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/catalog/catalog.h"
#include "core/experiment/own_need.h"

namespace pelab::experiment {

// The name of the declaration among the archive's extra files.
inline constexpr std::string_view kDeclarationName = "pelab.json";
inline constexpr std::size_t kMaxEncodingBytes = 64 << 20;  // of the file
inline constexpr std::size_t kMaxOwnOptions = 32;
inline constexpr std::size_t kMaxOwnChoices = 32;  // of one option

struct OwnOption {
  std::string name;
  catalog::FieldType type = catalog::FieldType::kReal;  // kBool, kInt, kReal or kChoice
  double min = 0;                                       // inclusive range of kInt and kReal
  double max = 0;
  std::vector<std::string> choices;  // of kChoice: 2 to kMaxOwnChoices, in the declaration's order
  catalog::Value default_value;
  std::string help;

  // The field pe.NAME. It refers to `full_name` and to this option, which must outlive it.
  catalog::Field ToField(const std::string& full_name) const;
};

struct OwnEncoding {
  std::string name;
  std::string sha256;  // of the file; empty in the file itself
  std::uint64_t bytes = 0;
  std::vector<std::string> methods;  // in the order of catalog::kOwnMethods
  bool causal_only = false;
  std::vector<OwnOption> options;  // in ascending order of their names
  std::vector<OwnNeed> needs;      // in ascending order of their fields
  // Whether it is meant for longer sequences than it was trained on. nullopt: not declared.
  std::optional<bool> extrapolates;
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

// The numbers that the module's `configure` gets for a text of the field pe.options: 1 for true, 0
// for false, and for a choice its place among the choices, counted from 0.
struct OptionValuesResult {
  std::vector<std::pair<std::string, double>> values;  // by option, in the order of the names
  std::string problem;  // for people: where the text does not fit the declaration
};
// `text` must be one that the field accepts.
OptionValuesResult OptionValues(const OwnEncoding& encoding, std::string_view text);

}  // namespace pelab::experiment
