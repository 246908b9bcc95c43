#include "client/command/check_data.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/terminal/put.h"
#include "client/terminal/style.h"
#include "client/terminal/table.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/own_files/own_file.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using experiment::OwnSplit;
using experiment::OwnTask;
using render::Json;

// The contents of one split, as far as its declaration does not have them.
struct SplitContents {
  std::int32_t shortest = 0;
  std::int32_t longest = 0;
  std::map<std::int32_t, std::int64_t> labels;  // how many targets have each
  std::set<std::int32_t> tokens;
};

std::vector<SplitContents> ContentsOf(const TaskFile& file) {
  std::vector<SplitContents> splits(file.declared.splits.size());
  const auto length = static_cast<std::size_t>(file.declared.length);
  const std::size_t targets = file.declared.by_position ? length : 1;
  for (std::size_t i = 0; i < file.lengths.size(); ++i) {
    SplitContents& split = splits[static_cast<std::size_t>(file.split[i])];
    const std::int32_t here = file.lengths[i];
    split.shortest = split.longest == 0 ? here : std::min(split.shortest, here);
    split.longest = std::max(split.longest, here);
    const auto row = file.tokens.begin() + static_cast<std::ptrdiff_t>(i * length);
    split.tokens.insert(row, row + here);
    for (std::size_t t = 0; t < targets; ++t) {
      const std::int32_t target = file.targets[i * targets + t];
      if (target != kNoTarget) ++split.labels[target];
    }
  }
  return splits;
}

// How many of `of` are not among `known`.
template <typename Container, typename Known, typename KeyOf>
std::int64_t CountUnknown(const Container& of, const Known& known, const KeyOf& key_of) {
  return std::count_if(of.begin(), of.end(),
                       [&](const auto& one) { return known.count(key_of(one)) == 0; });
}

std::int64_t UnknownTokens(const SplitContents& split, const SplitContents& train) {
  return CountUnknown(split.tokens, train.tokens, [](std::int32_t token) { return token; });
}

std::int64_t UnknownLabels(const SplitContents& split, const SplitContents& train) {
  return CountUnknown(split.labels, train.labels, [](const auto& label) { return label.first; });
}

std::int64_t Most(const SplitContents& split) {
  std::int64_t most = 0;
  for (const auto& [label, count] : split.labels) most = std::max(most, count);
  return most;
}

std::string Percent(std::int64_t part, std::int64_t whole) {
  return render::Fixed(100 * static_cast<double>(part) / static_cast<double>(whole), 1);
}

std::string SplitTable(const OwnTask& task, const std::vector<SplitContents>& contents) {
  using Align = render::Column::Align;
  render::Table table({{"split"},
                       {"examples", Align::kRight},
                       {"lengths", Align::kRight},
                       {"targets", Align::kRight},
                       {"labels", Align::kRight},
                       {"most frequent %", Align::kRight},
                       {"chance %", Align::kRight}});
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const OwnSplit& split = task.splits[i];
    const SplitContents& here = contents[i];
    const bool one = here.shortest == here.longest;
    table.AddRow({split.name, Concat(split.examples),
                  one ? Concat(here.longest) : Concat(here.shortest, "-", here.longest),
                  Concat(split.targets), Concat(here.labels.size()),
                  Percent(Most(here), split.targets), render::Fixed(100 * split.chance, 1)});
  }
  return table.Render(render::StyleOfStdout());
}

// "1 token is", "3 tokens are".
std::string CountedAre(std::int64_t count, const char* what) {
  return Concat(render::Counted(count, what), count == 1 ? " is" : " are");
}

// How many examples end in at least two equal tokens, which are then the same in most of them.
std::int64_t EndAlike(const TaskFile& file) {
  std::map<std::int32_t, std::int64_t> ends;
  const auto length = static_cast<std::size_t>(file.declared.length);
  for (std::size_t i = 1; i <= file.lengths.size(); ++i) {
    const std::int32_t last = file.tokens[i * length - 1];
    if (last == file.tokens[i * length - 2]) ++ends[last];
  }
  std::int64_t most = 0;
  for (const auto& [token, count] : ends) most = std::max(most, count);
  return most;
}

// Sentences about contents that are allowed but may be a mistake.
std::vector<std::string> Warnings(const TaskFile& file,
                                  const std::vector<SplitContents>& contents) {
  const OwnTask& task = file.declared;
  std::vector<std::string> warnings;
  const auto warn = [&](std::int64_t count, const std::string& text) {
    if (count > 0) warnings.push_back(text);
  };
  for (std::size_t i = 1; i < contents.size(); ++i) {
    const OwnSplit& split = task.splits[i];
    const std::int64_t tokens = UnknownTokens(contents[i], contents[0]);
    const std::int64_t labels = UnknownLabels(contents[i], contents[0]);
    warn(split.repeats, Concat(split.name, ": ", CountedAre(split.repeats, "example"),
                               " in the training split, too"));
    warn(tokens, Concat(split.name, ": ", CountedAre(tokens, "token"), " in no training example"));
    warn(labels, Concat(split.name, ": ", CountedAre(labels, "label"), " of no training target"));
  }
  const auto trained = static_cast<std::int64_t>(contents[0].labels.size());
  const std::int64_t unused = task.classes - trained;
  warn(unused, Concat(unused, " of ", task.classes, " classes have no training target"));
  warn(trained == 1, "all training targets have the same label");
  const std::int64_t alike = task.padded ? 0 : EndAlike(file);
  warn(2 * alike > file.examples(),
       Concat(alike, " of ", file.examples(),
              " examples end in the same token, at least twice: if that is padding, the file needs "
              "lengths"));
  return warnings;
}

std::string Heading(const OwnTask& task) {
  const std::int64_t last = task.first_label + task.classes - 1;
  return Concat("data ", task.name, task.help.empty() ? "" : ": " + render::Escape(task.help),
                "\nlength      ", task.length, task.padded ? ", some sequences are padded" : "",
                "\nvocabulary  ", task.vocabulary, "\nclasses     ", task.classes, ": labels ",
                task.first_label, " to ", last, ", ",
                task.by_position ? "one at each position that has a target" : "one for a sequence",
                "\nSHA-256     ", task.sha256, "\n\n");
}

std::string WordsText(const TaskFile& file) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> words;
  for (const auto& [id, word] : file.words) {
    if (words.size() < kMost) words.push_back(Concat(id, " ", render::Escape(word)));
  }
  if (words.empty()) return "";
  const bool more = file.words.size() > kMost;
  return Concat("\nwords: ", Join(words, ", "), more ? ", …" : "", "\n");
}

Json SplitsJson(const OwnTask& task, const std::vector<SplitContents>& contents) {
  Json splits = Json::array();
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const OwnSplit& split = task.splits[i];
    const SplitContents& here = contents[i];
    splits.push_back({{"name", split.name},
                      {"examples", split.examples},
                      {"targets", split.targets},
                      {"chance", split.chance},
                      {"repeats", split.repeats},
                      {"shortest", here.shortest},
                      {"longest", here.longest},
                      {"labels", here.labels.size()},
                      {"most_frequent", Most(here)},
                      {"unknown_tokens", UnknownTokens(here, contents[0])},
                      {"unknown_labels", UnknownLabels(here, contents[0])}});
    if (split.chance_nonzero) splits.back()["chance_nonzero"] = *split.chance_nonzero;
  }
  return splits;
}

}  // namespace

absl::StatusOr<int> CheckData(const Context& context, const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const own_files::OwnData read, own_files::ReadOwnData(path));
  const auto& task = std::get<OwnTask>(read.file.declaration);
  const std::vector<SplitContents> contents = ContentsOf(read.data);
  const std::vector<std::string> warnings = Warnings(read.data, contents);
  Json json = ParseJson<Json>(experiment::ToJson(task));
  json["splits"] = SplitsJson(task, contents);
  json["warnings"] = warnings;
  std::string text = Heading(task) + SplitTable(task, contents) + WordsText(read.data);
  if (!warnings.empty()) text += "\nto be looked at:\n";
  for (const std::string& warning : warnings) text += Concat("  ", warning, "\n");
  text += Concat("\nin a sweep: task: {name: own, file: ", render::Escape(path),
                 task.Find("test") == nullptr ? ", test: " + task.splits[1].name : "", "}\n");
  PutRow(context, json, text, {"name", "sha256"});
  return kExitOk;
}

}  // namespace pelab::client
