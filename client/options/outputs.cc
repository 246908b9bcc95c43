#include "client/options/outputs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/strings.h"

namespace pelab::client {
namespace {

constexpr std::array<const char*, 4> kEverywhere = {"table", "json", "jsonl", "csv"};
constexpr std::array<std::pair<const char*, Paper>, 4> kPaper = {{{"svg", Paper::kSvg},
                                                                  {"pdf", Paper::kPdf},
                                                                  {"latex", Paper::kLatex},
                                                                  {"markdown", Paper::kMarkdown}}};

struct Takes {
  const char* command;
  std::vector<std::string> more;  // in addition to kEverywhere
};
const std::vector<Takes>& CommandsWithMore() {
  static const auto& commands =
      *new std::vector<Takes>{{"curves", {"svg", "pdf", "latex", "markdown"}},
                              {"ablation", {"svg", "pdf", "latex", "markdown"}},
                              {"results", {"latex", "markdown"}},
                              {"claims", {"latex", "markdown"}}};
  return commands;
}

std::string List(const std::vector<std::string>& words, const char* last) {
  if (words.size() < 2) return Join(words, "");
  const std::vector<std::string> first(words.begin(), words.end() - 1);
  return Concat(Join(first, ", "), last, words.back());
}

}  // namespace

std::optional<Paper> PaperOf(const std::string& output) {
  for (const auto& [name, paper] : kPaper) {
    if (output == name) return paper;
  }
  return std::nullopt;
}

std::vector<std::string> OutputsOf(const std::string& command) {
  std::vector<std::string> outputs(kEverywhere.begin(), kEverywhere.end());
  for (const Takes& takes : CommandsWithMore()) {
    if (takes.command == command) {
      outputs.insert(outputs.end(), takes.more.begin(), takes.more.end());
    }
  }
  return outputs;
}

std::vector<std::string> AllOutputs() {
  std::vector<std::string> outputs(kEverywhere.begin(), kEverywhere.end());
  for (const auto& [name, paper] : kPaper) outputs.emplace_back(name);
  return outputs;
}

std::string OutputHelp(const std::vector<std::string>& outputs) {
  std::vector<std::string> words = outputs;
  std::replace(words.begin(), words.end(), std::string("jsonl"),
               std::string("jsonl (a row a line)"));
  return List(words, " or ") + " [default: table]";
}

absl::Status CheckOutput(const std::string& command, const std::string& output) {
  const std::vector<std::string> takes = OutputsOf(command);
  if (std::find(takes.begin(), takes.end(), output) != takes.end()) return absl::OkStatus();
  std::vector<std::string> others;
  for (const Takes& other : CommandsWithMore()) {
    if (std::find(other.more.begin(), other.more.end(), output) != other.more.end()) {
      others.push_back(Concat("pelab ", other.command));
    }
  }
  return absl::InvalidArgumentError(
      Concat("--output ", output, ": pelab ", command, " gives ", List(takes, " or "),
             others.empty() ? "" : Concat("; ", output, " is for ", List(others, " and "))));
}

}  // namespace pelab::client
