#include "core/safetensors/task_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/quoted.h"
#include "core/base/random.h"
#include "core/catalog/own.h"
#include "core/safetensors/safetensors.h"

namespace pelab {
namespace {

using experiment::OwnSplit;
using experiment::OwnTask;

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 29;  // N T
constexpr std::size_t kMaxText = 100;                       // bytes of a name of a class or word
constexpr std::size_t kMaxHelp = 300;                       // bytes, as in a declaration
constexpr std::string_view kTensors[] = {"tokens", "targets", "split", "lengths"};
constexpr std::string_view kTexts[] = {"name",   "vocabulary", "classes", "first_label",
                                       "splits", "chance",     "repeats", "class_names",
                                       "words",  "help"};

struct Problem {
  std::string text;
};
[[noreturn]] void Fail(std::string text) { throw Problem{std::move(text)}; }

std::string Text(std::int64_t number) { return std::to_string(number); }

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + Text(size);
  return "(" + text + ")";
}

// At most this many bytes of a text, cut between characters.
std::string Cut(const std::string& text, std::size_t most) {
  std::size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

template <typename Names>
std::string NameList(const Names& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list.empty() ? "nothing" : list;
}

// The elements of a tensor, whatever integers it holds.
std::int64_t ElementAt(const TensorEntry& tensor, std::int64_t index) {
  const auto read = [&](auto number) {
    std::memcpy(&number, tensor.bytes.data() + static_cast<std::size_t>(index) * sizeof number,
                sizeof number);
    return static_cast<std::int64_t>(number);
  };
  switch (tensor.dtype) {
    case DType::kI8:
      return read(std::int8_t{});
    case DType::kU8:
    case DType::kBool:
      return read(std::uint8_t{});
    case DType::kI16:
      return read(std::int16_t{});
    case DType::kU16:
      return read(std::uint16_t{});
    case DType::kI32:
      return read(std::int32_t{});
    case DType::kU32:
      return read(std::uint32_t{});
    default:
      return read(std::int64_t{});
  }
}

bool HoldsIntegers(DType dtype) {
  return dtype != DType::kF64 && dtype != DType::kF32 && dtype != DType::kF16 &&
         dtype != DType::kBF16 && dtype != DType::kU64;
}

class TaskReader {
 public:
  explicit TaskReader(const SafetensorsFile& from) : from_(from) {}

  TaskFile Read() {
    CheckNames();
    ReadSizes();
    ReadTexts();
    ReadSplit();
    ReadLengths();
    ReadTokens();
    ReadTargets();
    Count();
    return std::move(file_);
  }

 private:
  OwnTask& declared() { return file_.declared; }

  // Names --------------------------------------------------------------------------------------

  // A name that is nearly a known one is a slip; any other is left to the author.
  template <typename Known>
  static void RefuseSlip(const std::string& name, const Known& known, const char* kind) {
    const std::vector<std::string_view> names(std::begin(known), std::end(known));
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    const std::string near(catalog::DidYouMean(name, names));
    if (!near.empty()) {
      Fail("the file has " + std::string(kind) + " " + Quoted(name) + "; did you mean " + near +
           "?");
    }
  }

  void CheckNames() {
    for (const TensorEntry& tensor : from_.tensors) RefuseSlip(tensor.name, kTensors, "a tensor");
    for (const auto& [name, text] : from_.metadata) RefuseSlip(name, kTexts, "metadata");
  }

  const TensorEntry& Tensor(std::string_view name) {
    const TensorEntry* tensor = from_.Find(name);
    if (tensor == nullptr) {
      std::vector<std::string> there;
      for (const TensorEntry& one : from_.tensors) there.push_back(Quoted(one.name));
      there.resize(std::min<std::size_t>(there.size(), 10));
      Fail("the file has no tensor " + std::string(name) + "; it has " + NameList(there));
    }
    if (!HoldsIntegers(tensor->dtype)) {
      Fail(std::string(name) + " has the type " + std::string(NameOf(tensor->dtype)) +
           "; allowed: integers of at most 64 bits with a sign, or of at most 32 bits without one");
    }
    return *tensor;
  }

  void RequireShape(const TensorEntry& tensor, const std::vector<std::int64_t>& shape,
                    const std::string& letters) {
    if (tensor.shape == shape) return;
    Fail(tensor.name + " has the shape " + ShapeText(tensor.shape) +
         "; allowed: " + ShapeText(shape) + ", " + letters);
  }

  // Sizes and metadata -------------------------------------------------------------------------

  std::int64_t InField(const char* name, std::int64_t number, const char* field) {
    const catalog::Field& range = *catalog::FindField(field, catalog::OwnTask().name);
    const std::string allowed = catalog::CheckValue(range, number);
    if (allowed.empty()) return number;
    Fail(std::string(name) + " is " + Text(number) + "; allowed: " + allowed);
  }

  void ReadSizes() {
    const TensorEntry& tokens = Tensor("tokens");
    if (tokens.shape.size() != 2) {
      Fail("tokens has the shape " + ShapeText(tokens.shape) +
           "; allowed: (N, T), a row for each example");
    }
    examples_ = tokens.shape[0];
    length_ = InField("the length of tokens", tokens.shape[1], "task.length");
    if (examples_ < 2 || examples_ > kMaxTokens / length_) {
      Fail("tokens has " + Text(examples_) + " rows; allowed: 2 to " + Text(kMaxTokens / length_) +
           ", so that they hold at most 2^29 tokens");
    }
    declared().length = length_;
    const TensorEntry& targets = Tensor("targets");
    declared().by_position = targets.shape.size() == 2;
    if (declared().by_position) {
      RequireShape(targets, {examples_, length_}, "a target for each position, as tokens");
    } else {
      RequireShape(targets, {examples_}, "a target for each example");
    }
  }

  const std::string* TextOf(const char* name) const {
    const auto found = from_.metadata.find(name);
    return found == from_.metadata.end() ? nullptr : &found->second;
  }

  std::optional<std::int64_t> IntegerText(const char* name) const {
    const std::string* text = TextOf(name);
    if (text == nullptr) return std::nullopt;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc() || end != text->data() + text->size()) {
      Fail("metadata " + std::string(name) + " must be an integer in decimal digits");
    }
    return number;
  }

  static void RequireName(const std::string& what, const std::string& name) {
    if (catalog::IsOwnName(name)) return;
    Fail(what + " " + Quoted(name) + " must be " + std::string(catalog::kOwnNameRule));
  }

  void ReadTexts() {
    const std::string* name = TextOf("name");
    declared().name = name == nullptr ? "data" : *name;
    RequireName("the name", declared().name);
    if (const std::string* help = TextOf("help")) declared().help = Cut(*help, kMaxHelp);
    declared().first_label =
        InField("first_label", IntegerText("first_label").value_or(0), "task.first_label");
    if (declared().by_position && declared().first_label < 0) {
      Fail("first_label is " + Text(declared().first_label) +
           "; allowed: 0 or more, because the target -1 says that a position has none");
    }
    ReadSplitNames();
    ReadChance();
    const std::string* repeats = TextOf("repeats");
    if (repeats != nullptr && *repeats != "allowed" && *repeats != "refused") {
      Fail("metadata repeats must be allowed or refused");
    }
    repeats_allowed_ = repeats != nullptr && *repeats == "allowed";
  }

  void ReadSplitNames() {
    nlohmann::json names = {experiment::kTrainSplit, "test"};
    if (const std::string* text = TextOf("splits")) names = ParseJson(*text);
    constexpr char kRule[] =
        "metadata splits must be a JSON list of names, [\"train\", \"test\"], with train among "
        "them; a number in split is a place in it";
    if (!names.is_array() || names.size() < 2 || names.size() > experiment::kMaxOwnSplits) {
      Fail(std::string(kRule) + "; it has 2 to " + Text(experiment::kMaxOwnSplits) + " names");
    }
    for (const nlohmann::json& name : names) {
      if (!name.is_string()) Fail(kRule);
      names_.push_back(name.get<std::string>());
      RequireName("the split", names_.back());
    }
    if (std::set<std::string>(names_.begin(), names_.end()).size() != names_.size()) {
      Fail("metadata splits has a name twice");
    }
    const auto train = std::find(names_.begin(), names_.end(), experiment::kTrainSplit);
    if (train == names_.end()) {
      const std::vector<std::string_view> wanted = {experiment::kTrainSplit};
      std::string slip;
      for (const std::string& name : names_) {
        if (!catalog::DidYouMean(name, wanted).empty()) {
          slip = "; did you mean train with " + name + "?";
        }
      }
      Fail("the splits are " + NameList(names_) + "; allowed: train and at least one more" + slip);
    }
    // The training split comes first in the declaration, and its examples first in the data.
    train_ = train - names_.begin();
    declared().splits.push_back({.name = *train});
    for (const std::string& name : names_) {
      if (name != experiment::kTrainSplit) declared().splits.push_back({.name = name});
    }
  }

  void ReadChance() {
    const std::string* text = TextOf("chance");
    if (text == nullptr) return;
    double chance = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), chance);
    if (error != std::errc() || end != text->data() + text->size() || !(chance >= 0) ||
        !(chance <= 1)) {
      Fail("metadata chance must be a number from 0 to 1");
    }
    chance_ = chance;
  }

  // Tensors ------------------------------------------------------------------------------------

  void ReadSplit() {
    const TensorEntry& split = Tensor("split");
    RequireShape(split, {examples_}, "a split for each example");
    file_.split.resize(static_cast<std::size_t>(examples_));
    const auto count = static_cast<std::int64_t>(names_.size());
    for (std::int64_t i = 0; i < examples_; ++i) {
      const std::int64_t of = ElementAt(split, i);
      if (of < 0 || of >= count) {
        Fail("split[" + Text(i) + "] is " + Text(of) + "; allowed: 0 to " + Text(count - 1) +
             ", the places of " + NameList(names_) + " (metadata splits)");
      }
      const std::int64_t place = of == train_ ? 0 : of < train_ ? of + 1 : of;
      file_.split[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(place);
      ++declared().splits[static_cast<std::size_t>(place)].examples;
    }
    for (const OwnSplit& one : declared().splits) {
      if (one.examples == 0) Fail("the split " + one.name + " has no example");
    }
  }

  void ReadLengths() {
    file_.lengths.assign(static_cast<std::size_t>(examples_), static_cast<std::int32_t>(length_));
    if (from_.Find("lengths") != nullptr) TakeLengths();
    for (std::int64_t i = 0; i < examples_; ++i) {
      const auto place = static_cast<std::size_t>(file_.split[static_cast<std::size_t>(i)]);
      OwnSplit& split = declared().splits[place];
      split.longest = std::max(split.longest, LengthOf(i));
    }
  }

  void TakeLengths() {
    const TensorEntry& lengths = Tensor("lengths");
    RequireShape(lengths, {examples_}, "a number of tokens for each example");
    for (std::int64_t i = 0; i < examples_; ++i) {
      const std::int64_t length = ElementAt(lengths, i);
      if (length < 1 || length > length_) {
        Fail("lengths[" + Text(i) + "] is " + Text(length) + "; allowed: 1 to " + Text(length_));
      }
      file_.lengths[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(length);
      declared().padded = declared().padded || length < length_;
    }
  }

  std::int64_t LengthOf(std::int64_t example) const {
    return file_.lengths[static_cast<std::size_t>(example)];
  }

  void ReadTokens() {
    const TensorEntry& tokens = Tensor("tokens");
    const std::optional<std::int64_t> vocabulary = IntegerText("vocabulary");
    constexpr std::int64_t kMost = 1'000'000;  // of task.vocabulary
    const std::int64_t end = vocabulary.value_or(kMost);
    if (end < 1 || end > kMost) {
      Fail("vocabulary is " + Text(end) + "; allowed: an integer from 1 to " + Text(kMost));
    }
    std::int64_t largest = 0;
    file_.tokens.assign(static_cast<std::size_t>(examples_ * length_), 0);
    for (std::int64_t i = 0; i < examples_; ++i) {
      for (std::int64_t t = 0; t < LengthOf(i); ++t) {
        const std::int64_t token = ElementAt(tokens, i * length_ + t);
        if (token < 0 || token >= end) {
          Fail("tokens[" + Text(i) + ", " + Text(t) + "] is " + Text(token) + "; allowed: 0 to " +
               Text(end - 1) + (vocabulary ? " (metadata vocabulary)" : ""));
        }
        largest = std::max(largest, token);
        file_.tokens[static_cast<std::size_t>(i * length_ + t)] = static_cast<std::int32_t>(token);
      }
    }
    // A model has an embedding for at least so many ids, whether they occur or not.
    constexpr std::int64_t kLeast = 8;
    declared().vocabulary = std::max(kLeast, vocabulary ? end : largest + 1);
    ReadWords();
  }

  void ReadTargets() {
    const TensorEntry& targets = Tensor("targets");
    const std::optional<std::int64_t> classes = IntegerText("classes");
    constexpr std::int64_t kMost = 1'000'000;  // of task.classes
    const std::int64_t first = declared().first_label;
    const std::int64_t end =
        first + (classes ? InField("classes", *classes, "task.classes") : kMost);
    const bool by_position = declared().by_position;
    const std::int64_t columns = by_position ? length_ : 1;
    std::int64_t largest = first;
    file_.targets.assign(static_cast<std::size_t>(examples_ * columns), kNoTarget);
    for (std::int64_t at = 0; at < examples_ * columns; ++at) {
      const std::int64_t target = ElementAt(targets, at);
      if (by_position && (target == -1 || at % columns >= LengthOf(at / columns))) continue;
      if (target < first || target >= end) {
        Fail("targets[" + Text(at / columns) + (by_position ? ", " + Text(at % columns) : "") +
             "] is " + Text(target) + "; allowed: " + Text(first) + " to " + Text(end - 1) +
             (classes ? " (metadata classes)" : "") + (by_position ? ", or -1 for none" : ""));
      }
      largest = std::max(largest, target);
      file_.targets[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(target);
    }
    declared().classes = classes ? end - first : largest - first + 1;
    ReadClassNames();
  }

  // Words for people ---------------------------------------------------------------------------

  void ReadClassNames() {
    const std::string* text = TextOf("class_names");
    if (text == nullptr) return;
    const nlohmann::json names = ParseJson(*text);
    const auto is_name = [](const nlohmann::json& name) {
      return name.is_string() && name.get_ref<const std::string&>().size() <= kMaxText;
    };
    if (!names.is_array() || names.size() != static_cast<std::size_t>(declared().classes) ||
        !std::all_of(names.begin(), names.end(), is_name)) {
      Fail("metadata class_names must be a JSON list of " + Text(declared().classes) +
           " texts of at most " + Text(kMaxText) + " bytes, one for each class");
    }
    for (const nlohmann::json& name : names) file_.class_names.push_back(name.get<std::string>());
  }

  void ReadWords() {
    const std::string* text = TextOf("words");
    if (text == nullptr) return;
    const nlohmann::json words = ParseJson(*text);
    const std::string rule =
        "metadata words must be a JSON object such as {\"5\": \"open\"}: token "
        "ids from 0 to " +
        Text(declared().vocabulary - 1) + " with texts of at most " + Text(kMaxText) + " bytes";
    if (!words.is_object()) Fail(rule);
    for (const auto& [id, word] : words.items()) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
      if (error != std::errc() || end != id.data() + id.size() || number < 0 ||
          number >= declared().vocabulary || !word.is_string() ||
          word.get_ref<const std::string&>().size() > kMaxText) {
        Fail(rule);
      }
      file_.words[number] = word.get<std::string>();
    }
  }

  // Counts -------------------------------------------------------------------------------------

  void Count() {
    CountTargets();
    CountRepeats();
  }

  // The label that most targets of the training split have, out of those from `least` on; the
  // smallest of several.
  std::int32_t FrequentLabel(std::int64_t least) const {
    std::vector<std::int64_t> count(static_cast<std::size_t>(file_.declared.classes));
    for (std::size_t at = 0; at < file_.targets.size(); ++at) {
      if (file_.targets[at] == kNoTarget || SplitOfTarget(at) != 0) continue;
      ++count[static_cast<std::size_t>(file_.targets[at] - file_.declared.first_label)];
    }
    const auto from = count.begin() + (least - file_.declared.first_label);
    const auto most = std::max_element(from, count.end());
    return static_cast<std::int32_t>(file_.declared.first_label + (most - count.begin()));
  }

  std::size_t SplitOfTarget(std::size_t at) const {
    const auto columns = static_cast<std::size_t>(file_.declared.by_position ? length_ : 1);
    return static_cast<std::size_t>(file_.split[at / columns]);
  }

  void CountTargets() {
    std::vector<OwnSplit>& splits = declared().splits;
    const std::int32_t frequent = FrequentLabel(declared().first_label);
    std::vector<std::int64_t> guessed(splits.size());
    for (std::size_t at = 0; at < file_.targets.size(); ++at) {
      if (file_.targets[at] == kNoTarget) continue;
      ++splits[SplitOfTarget(at)].targets;
      if (file_.targets[at] == frequent) ++guessed[SplitOfTarget(at)];
    }
    for (std::size_t i = 0; i < splits.size(); ++i) {
      OwnSplit& split = splits[i];
      if (split.targets == 0) Fail("no position of the split " + split.name + " has a target");
      split.chance = static_cast<double>(guessed[i]) / static_cast<double>(split.targets);
      if (chance_ && i > 0) split.chance = *chance_;
    }
    if (declared().classes > 1) CountNonzero();
  }

  // The chance without the targets of class 0. What the file says of the other splits holds.
  void CountNonzero() {
    std::vector<OwnSplit>& splits = declared().splits;
    const std::int32_t first = static_cast<std::int32_t>(declared().first_label);
    const std::int32_t frequent = FrequentLabel(first + 1);
    std::vector<std::int64_t> scored(splits.size()), guessed(splits.size());
    for (std::size_t at = 0; at < file_.targets.size(); ++at) {
      if (file_.targets[at] == kNoTarget || file_.targets[at] == first) continue;
      ++scored[SplitOfTarget(at)];
      if (file_.targets[at] == frequent) ++guessed[SplitOfTarget(at)];
    }
    for (std::size_t i = 0; i < splits.size(); ++i) {
      if (scored[i] == 0 || (chance_ && i > 0)) continue;
      const double chance = static_cast<double>(guessed[i]) / static_cast<double>(scored[i]);
      if (chance != splits[i].chance) splits[i].chance_nonzero = chance;
    }
  }

  std::uint64_t HashOf(std::int64_t example) const {
    std::uint64_t hash = Mix64(static_cast<std::uint64_t>(LengthOf(example)) + 1);
    for (std::int64_t t = 0; t < LengthOf(example); ++t) {
      hash = Mix64(hash ^ static_cast<std::uint64_t>(
                              file_.tokens[static_cast<std::size_t>(example * length_ + t)]));
    }
    return hash;
  }

  bool SameTokens(std::int64_t a, std::int64_t b) const {
    const auto row = [&](std::int64_t i) { return file_.tokens.begin() + i * length_; };
    return LengthOf(a) == LengthOf(b) && std::equal(row(a), row(a) + LengthOf(a), row(b));
  }

  void CountRepeats() {
    std::unordered_multimap<std::uint64_t, std::int64_t> trained;  // by hash: the example
    for (std::int64_t i = 0; i < examples_; ++i) {
      if (file_.split[static_cast<std::size_t>(i)] == 0) Remember(i, &trained);
    }
    std::string first;
    for (std::int64_t i = 0; i < examples_; ++i) {
      const auto split = static_cast<std::size_t>(file_.split[static_cast<std::size_t>(i)]);
      if (split == 0) continue;
      const std::optional<std::int64_t> same = Find(i, trained);
      if (!same) continue;
      OwnSplit& of = declared().splits[split];
      if (first.empty()) {
        first = "row " + Text(i) + " of the file, of " + of.name + ", has the tokens of row " +
                Text(*same) + ", of train";
      }
      ++of.repeats;
    }
    if (first.empty() || repeats_allowed_) return;
    std::string counts;
    for (const OwnSplit& of : declared().splits) {
      if (of.repeats == 0) continue;
      counts += (counts.empty() ? "" : ", ") + Text(of.repeats) + " of " + Text(of.examples) +
                " examples of " + of.name;
    }
    Fail(counts + " are in train, too (" + first +
         "); allowed: none, or any number with the metadata repeats: allowed "
         "(repeats_allowed=True)");
  }

  std::optional<std::int64_t> Find(
      std::int64_t example,
      const std::unordered_multimap<std::uint64_t, std::int64_t>& among) const {
    const auto [begin, end] = among.equal_range(HashOf(example));
    for (auto at = begin; at != end; ++at) {
      if (SameTokens(example, at->second)) return at->second;
    }
    return std::nullopt;
  }

  // One of several equal examples is enough; a hash that others share by chance is kept for each.
  void Remember(std::int64_t example, std::unordered_multimap<std::uint64_t, std::int64_t>* among) {
    if (!Find(example, *among)) among->emplace(HashOf(example), example);
  }

  const SafetensorsFile& from_;
  TaskFile file_;
  std::int64_t examples_ = 0;
  std::int64_t length_ = 0;
  std::vector<std::string> names_;  // of the splits, in the order of metadata splits
  std::int64_t train_ = 0;          // the place of the training split among them
  std::optional<double> chance_;
  bool repeats_allowed_ = false;
};

}  // namespace

TaskFileResult ParseTaskFile(std::string_view bytes) {
  TaskFileResult result;
  if (bytes.size() > experiment::kMaxTaskBytes) {
    result.problem = "the file has " + std::to_string(bytes.size()) + " bytes; at most " +
                     std::to_string(experiment::kMaxTaskBytes) + " are allowed";
    return result;
  }
  const SafetensorsResult tensors = ParseSafetensors(bytes);
  if (!tensors.problem.empty()) {
    result.problem = "this is no safetensors file: " + tensors.problem;
    return result;
  }
  try {
    result.file = TaskReader(tensors.file).Read();
  } catch (const Problem& problem) {
    result.problem = problem.text;
  }
  return result;
}

}  // namespace pelab
