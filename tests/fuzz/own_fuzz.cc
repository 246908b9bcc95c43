// Any bytes as the file of an own encoding, and as its declaration.
#include <fstream>

#include "core/catalog/own.h"
#include "core/torchscript/archive.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_dir.h"

namespace pelab::own_fuzz {
namespace {

using fuzz::Require;

void CheckEncoding(const experiment::OwnEncoding& encoding) {
  const std::string json = experiment::ToJson(encoding);
  const experiment::OwnEncodingResult again = experiment::ParseOwnEncoding(json);
  Require(again.problem.empty(), "a declaration reads back", again.problem);
  Require(experiment::ToJson(again.encoding) == json, "a declaration is the same again", json);
  const std::string options = experiment::OptionsText(encoding, {});
  Require(catalog::IsOptionsText(options), "the options are a value of their field", options);
  const experiment::OptionValuesResult values = experiment::OptionValues(encoding, options);
  Require(values.problem.empty(), "the default of each option is allowed", values.problem);
  Require(values.values.size() == encoding.options.size(), "each option has a value", options);
  for (const experiment::OwnNeed& need : encoding.needs) {
    Require(!need.InWords().empty(), "a need allows something", need.field);
  }
}

void CheckFile(std::string_view text) {
  static const TempDir directory;
  const std::string path = directory / "own.pt";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  const auto encoding = torchscript::ReadEncodingFile(path);
  if (!encoding.ok()) return fuzz::RequireRefusal(encoding.status());
  Require(catalog::IsHash(encoding->sha256), "a file has its hash", encoding->sha256);
  CheckEncoding(*encoding);
}

}  // namespace

PELAB_FUZZ_TARGET(own) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const experiment::OwnEncodingResult read = experiment::ParseOwnEncoding(text);
  if (read.problem.empty()) {
    CheckEncoding(read.encoding);
  } else {
    fuzz::RequireSentence(read.problem);
  }
  CheckFile(text);
  return 0;
}

}  // namespace pelab::own_fuzz
