#include "worker/trainer/pe/own_source.h"

#include <algorithm>
#include <utility>

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

void CheckNeeds(const experiment::OwnEncoding& declared, const OwnSource& source) {
  for (const experiment::OwnNeed* need : experiment::UnmetNeeds(declared.needs, source.values)) {
    FailOwn(source.name, need->field + " is " +
                             catalog::ToText(source.values.find(need->field)->second) +
                             "; allowed: what its file needs, " + need->InWords());
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
  source.options = job.Choice("pe.options");
  source.values = job.values;
  source.bytes = ReadNamedFile("encoding " + source.name, job.Choice("pe.file"));
  return source;
}

std::vector<std::pair<std::string, double>> CheckDeclaration(const std::string& declaration,
                                                             const OwnSource& source) {
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
  experiment::OptionValuesResult options = experiment::OptionValues(declared, source.options);
  if (!options.problem.empty()) FailOwn(source.name, options.problem);
  CheckNeeds(declared, source);
  return std::move(options.values);
}

void FailOwn(const std::string& name, const std::string& problem) {
  throw TrainerError(ErrorKind::kBadSpec, "encoding " + name + ": " + problem);
}

}  // namespace pelab::trainer
