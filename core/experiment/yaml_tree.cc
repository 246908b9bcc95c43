#include "core/experiment/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "core/base/utf8.h"
#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

using Kind = YamlNode::Kind;

// Stops the parse at a place; caught in ParseYaml.
struct Stop {
  YAML::Mark mark;
  std::string message;
};

Violation At(int line, int column, std::string message) {
  Violation violation;
  violation.line = line;
  violation.column = column;
  violation.message = std::move(message);
  return violation;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  YamlPointer root() const { return root_; }
  std::vector<Violation>& violations() { return violations_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_ != nullptr) throw Stop{mark, "a second document starts here; only one is allowed"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Finish(Make(Kind::kNull, mark, anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseTag(mark, tag);
    const auto node = Make(Kind::kScalar, mark, anchor);
    node->quoted = tag == "!";
    node->text = value;
    // yaml-cpp turns the escapes \_ and \N into single bytes that are not valid UTF-8.
    if (!IsUtf8(value) || value.find('\0') != std::string::npos)
      throw Stop{mark, "an escape here is not a character"};
    Finish(node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    RefuseTag(mark, tag);
    RefuseDepth(mark);
    open_.push_back({Make(Kind::kList, mark, anchor), nullptr, {}});
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    RefuseTag(mark, tag);
    RefuseDepth(mark);
    open_.push_back({Make(Kind::kMap, mark, anchor), nullptr, {}});
  }
  void OnMapEnd() override { Close(); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Stop{mark, "the alias names no anchor before it"};
    for (const Open& open : open_) {
      if (open.node == found->second) throw Stop{mark, "the alias refers to what it stands in"};
    }
    Count(mark, found->second->size);
    Attach(mark, found->second);
  }

 private:
  // A list or map that is not closed yet.
  struct Open {
    std::shared_ptr<YamlNode> node;
    YamlPointer key;                  // in a map: the key that waits for its value
    std::map<std::string, int> seen;  // in a map: keys and their lines
  };

  std::shared_ptr<YamlNode> Make(Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    Count(mark, 1);
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = mark.line + 1;
    node->column = mark.column + 1;
    if (anchor != 0) anchors_[anchor] = node;
    return node;
  }

  void Count(const YAML::Mark& mark, std::size_t nodes) {
    total_ += nodes;
    if (total_ <= kMaxYamlNodes) return;
    throw Stop{mark, "too many values, those behind aliases counted each time; at most " +
                         std::to_string(kMaxYamlNodes) + " are allowed"};
  }

  void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Stop{mark, "the tag " + Shorten(tag, 60) + " is not supported; leave it out"};
  }

  void RefuseDepth(const YAML::Mark& mark) {
    if (open_.size() < kMaxYamlDepth) return;
    throw Stop{mark, "lists and maps are more than " + std::to_string(kMaxYamlDepth) +
                         " deep in each other here"};
  }

  void Close() {
    const std::shared_ptr<YamlNode> node = open_.back().node;
    open_.pop_back();
    Finish(node);
  }

  void Finish(const std::shared_ptr<YamlNode>& node) {
    YAML::Mark mark;
    mark.line = node->line - 1;
    mark.column = node->column - 1;
    Attach(mark, node);
  }

  void Attach(const YAML::Mark& mark, const YamlPointer& node) {
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Open& parent = open_.back();
    parent.node->size += node->size;
    if (parent.node->kind == Kind::kList) {
      parent.node->items.push_back(node);
    } else if (parent.key == nullptr) {
      AttachKey(mark, parent, node);
    } else {
      AttachValue(parent, node);
    }
  }

  void AttachKey(const YAML::Mark& mark, Open& parent, const YamlPointer& node) {
    if (node->kind != Kind::kScalar) throw Stop{mark, "a key must be text, not " + InWords(*node)};
    parent.key = node;
  }

  void AttachValue(Open& parent, const YamlPointer& node) {
    const YamlPointer key = std::exchange(parent.key, nullptr);
    const auto [first, is_new] = parent.seen.emplace(key->text, key->line);
    if (is_new) {
      parent.node->members.push_back({key, node->kind == Kind::kNull ? NothingAt(*key) : node});
      return;
    }
    Violation violation = At(key->line, key->column,
                             "duplicate key " + InWords(*key) + "; it is already in line " +
                                 std::to_string(first->second));
    violation.path = key->text;
    violation.value = key->text;
    violation.allowed = "each key once";
    violations_.push_back(std::move(violation));
  }

  // yaml-cpp reports a missing value at the next token, so this uses the key's place instead.
  static YamlPointer NothingAt(const YamlNode& key) {
    auto node = std::make_shared<YamlNode>();
    node->line = key.line;
    node->column = key.column;
    return node;
  }

  YamlPointer root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::shared_ptr<YamlNode>> anchors_;
  std::size_t total_ = 0;
  std::vector<Violation> violations_;
};

// Whether the indentation of that line (from 0) contains a tab. yaml-cpp reports such a tab as
// another error further on.
bool IsIndentedWithTabs(std::string_view text, int line) {
  for (; line > 0 && text.find('\n') != std::string_view::npos; --line) {
    text.remove_prefix(text.find('\n') + 1);
  }
  const std::size_t end = text.find_first_not_of(" \t");
  return text.substr(0, end).find('\t') != std::string_view::npos;
}

// Rewords frequent messages of yaml-cpp, which use terms of its grammar, in terms of the document.
std::string Reworded(const std::string& message) {
  static const std::map<std::string, std::string, std::less<>> words = {
      {YAML::ErrorMsg::END_OF_SEQ_FLOW,
       "a list that starts with [ is not closed, or a comma is missing"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW,
       "a map that starts with { is not closed, or a comma is missing"},
      {YAML::ErrorMsg::END_OF_SEQ,
       "a list ends here although its indentation goes on: expected \"- \""},
      {YAML::ErrorMsg::END_OF_MAP, "expected a key and \": \" at this indentation"},
      {YAML::ErrorMsg::MAP_VALUE, "a \":\" cannot stand here; text that holds one needs quotes"},
      {YAML::ErrorMsg::MAP_KEY, "a key cannot stand here"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a \"- \" cannot stand here"},
      {YAML::ErrorMsg::FLOW_END, "a ] or } closes nothing"},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "text in quotes is not closed"},
      {YAML::ErrorMsg::TAB_IN_INDENTATION, "indentation must be spaces, not tabs"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "a character that cannot start a value"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, "the alias names no anchor before it"},
  };
  const auto found = words.find(message);
  // yaml-cpp quotes bytes, of which a character can have several.
  return "broken YAML: " + (found == words.end() ? ValidUtf8(message) : found->second);
}

Violation FromMark(const YAML::Mark& mark, std::string message) {
  return mark.is_null() ? At(1, 1, std::move(message))
                        : At(mark.line + 1, mark.column + 1, std::move(message));
}

// The place of the first byte that is not valid text, if any.
std::optional<Violation> FindBadBytes(std::string_view text) {
  int line = 1;
  int column = 1;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character c = FirstCharacter(text.substr(i));
    if (!c.valid || c.value == 0) return At(line, column, "a byte that is not UTF-8 text");
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
    i += c.bytes;
  }
  return std::nullopt;
}

bool LooksLikeNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("+-.0123456789eE_") == std::string_view::npos;
}

}  // namespace

YamlResult ParseYaml(std::string_view text, std::string_view what) {
  YamlResult result;
  if (text.size() > kMaxDocumentBytes) {
    result.violations.push_back(At(0, 0,
                                   "the " + std::string(what) + " has " +
                                       std::to_string(text.size()) + " bytes; at most " +
                                       std::to_string(kMaxDocumentBytes) + " are allowed"));
    return result;
  }
  if (auto bad = FindBadBytes(text)) {
    result.violations.push_back(std::move(*bad));
    return result;
  }
  TreeBuilder builder;
  std::optional<Violation> broken;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop& stop) {
    broken = FromMark(stop.mark, stop.message);
  } catch (const YAML::Exception& error) {
    const bool tabs = IsIndentedWithTabs(text, error.mark.line);
    broken = FromMark(error.mark, Reworded(tabs ? YAML::ErrorMsg::TAB_IN_INDENTATION : error.msg));
  } catch (const std::exception& error) {
    broken = At(1, 1, std::string("broken YAML: ") + error.what());
  }
  result.violations = std::move(builder.violations());
  if (broken) {
    result.violations.push_back(std::move(*broken));
  } else if (builder.root() == nullptr) {
    result.violations.push_back(At(1, 1, "the " + std::string(what) + " is empty"));
  } else {
    result.root = builder.root();
  }
  return result;
}

const YamlNode* MemberOf(const YamlNode& node, std::string_view key) {
  for (const YamlMember& member : node.members) {
    if (member.key->text == key) return member.value.get();
  }
  return nullptr;
}

std::string InWords(const YamlNode& node) {
  constexpr std::size_t kLongest = 60;
  switch (node.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  std::string text = Shorten(node.text, kLongest);
  const bool plain = !node.quoted && (LooksLikeNumber(text) || text == "true" || text == "false");
  if (plain) return text;
  std::string shown = "\"";
  for (const char c : text) {
    if (c == '\n') {
      shown += "\\n";
    } else {
      shown += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return shown + "\"";
}

}  // namespace pelab::experiment
