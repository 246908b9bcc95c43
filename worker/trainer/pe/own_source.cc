#include "worker/trainer/pe/own_source.h"

#include <algorithm>
#include <cmath>

#include "core/experiment/own_encoding.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {
namespace {

std::string ListOf(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list.empty() ? "none" : list;
}

std::string YesOrNo(bool value) { return value ? "true" : "false"; }

void RequireSame(const OwnSource& source, const std::string& what, const std::string& declared,
                 const std::string& of_job) {
  if (declared == of_job) return;
  FailOwn(source.name,
          "its file declares " + what + " " + declared + "; allowed: that of the job, " + of_job);
}

// The number as a value of the option's type, which the catalog can check. A bool that is neither 0
// nor 1 and an int with a fraction stay numbers, which are refused.
catalog::Value OptionValue(const experiment::OwnOption& option, double number) {
  if (option.type == catalog::FieldType::kBool && (number == 0 || number == 1)) return number == 1;
  if (option.type == catalog::FieldType::kInt && std::trunc(number) == number) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

void CheckOptions(const experiment::OwnEncoding& declared, const OwnSource& source) {
  std::vector<std::string> in_file, in_job;
  for (const experiment::OwnOption& option : declared.options) in_file.push_back(option.name);
  for (const auto& [name, number] : source.options) in_job.push_back(name);
  RequireSame(source, "the options", ListOf(in_file), ListOf(in_job));
  for (std::size_t i = 0; i < in_file.size(); ++i) {
    const std::string field = "pe." + in_file[i];
    const catalog::Value value = OptionValue(declared.options[i], source.options[i].second);
    const std::string allowed = catalog::CheckValue(declared.options[i].ToField(field), value);
    if (allowed.empty()) continue;
    FailOwn(source.name,
            "the option " + in_file[i] + " is " + catalog::ToText(value) + "; allowed: " + allowed);
  }
}

}  // namespace

bool OwnSource::Has(const std::string& method) const {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

OwnSource ReadOwnSource(const experiment::Job& job, const ModelConfig& config) {
  OwnSource source;
  source.name = job.Choice("pe.encoding");
  source.methods = std::get<std::vector<std::string>>(job.values.at("pe.methods"));
  source.causal_only = job.Bool("pe.causal_only");
  source.sizes = {{"layers", config.layers},   {"heads", config.heads},
                  {"d_model", config.d_model}, {"head_size", config.head_dim()},
                  {"max_len", config.max_len}, {"causal", config.causal ? 1 : 0}};
  source.options = experiment::OptionValues(job.Choice("pe.options"));
  source.bytes = ReadNamedFile("encoding " + source.name, job.Choice("pe.file"));
  return source;
}

void CheckDeclaration(const std::string& declaration, const OwnSource& source) {
  const std::string extra(experiment::kDeclarationName);
  if (declaration.empty()) {
    FailOwn(source.name,
            "its file has no declaration; allowed: an archive with the extra file " + extra);
  }
  const experiment::OwnEncodingResult read = experiment::ParseOwnEncoding(declaration);
  if (!read.problem.empty()) FailOwn(source.name, extra + " of its file: " + read.problem);
  const experiment::OwnEncoding& declared = read.encoding;
  RequireSame(source, "the name", declared.name, source.name);
  RequireSame(source, "the methods", ListOf(declared.methods), ListOf(source.methods));
  RequireSame(source, "causal_only", YesOrNo(declared.causal_only), YesOrNo(source.causal_only));
  CheckOptions(declared, source);
}

void FailOwn(const std::string& name, const std::string& problem) {
  throw TrainerError(ErrorKind::kBadSpec, "encoding " + name + ": " + problem);
}

}  // namespace pelab::trainer
