// A YAML document as a small tree whose nodes know their line and column. Built from yaml-cpp's
// events and not from its nodes, so that duplicate keys are detected, aliases cannot multiply and
// memory is bounded. For readers of documents: sweeps, and claim sheets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/violation.h"

namespace pelab::experiment {

struct YamlNode;
using YamlPointer = std::shared_ptr<const YamlNode>;

struct YamlMember {
  YamlPointer key;  // always a scalar
  YamlPointer value;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;  // line and column count from 1
  int column = 0;
  bool quoted = false;              // a scalar in quotes is text, whatever it looks like
  std::string text;                 // scalars only
  std::vector<YamlPointer> items;   // lists only
  std::vector<YamlMember> members;  // maps only; in document order, without duplicates
  std::size_t size = 1;             // number of nodes in this tree; aliased nodes count each time
};

inline constexpr std::size_t kMaxYamlNodes = 50'000;
inline constexpr std::size_t kMaxYamlDepth = 64;

struct YamlResult {
  YamlPointer root;  // null if and only if the text could not be read as one document
  std::vector<Violation> violations;  // can be set together with `root`: duplicate keys
};

// The value of a map's key; null if it has none, or if `node` is no map.
const YamlNode* MemberOf(const YamlNode& node, std::string_view key);

// `what` names the text in messages: "document", "value".
YamlResult ParseYaml(std::string_view text, std::string_view what);

// The node for messages, shortened: numbers and booleans as written, other scalars in quotes; "a
// list", "a map", "nothing".
std::string InWords(const YamlNode& node);

}  // namespace pelab::experiment
