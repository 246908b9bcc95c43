// A YAML document as a small tree that remembers where everything stands. Built from yaml-cpp's
// events rather than its nodes, so that duplicate keys are seen, aliases cannot multiply and memory
// is bounded. Private to core/experiment.
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
  int line = 0;  // both count from 1
  int column = 0;
  bool quoted = false;              // scalar in quotes: text whatever it looks like
  std::string text;                 // of a scalar
  std::vector<YamlPointer> items;   // of a list
  std::vector<YamlMember> members;  // of a map, in order, without duplicates
  std::size_t size = 1;             // nodes in here, those behind aliases counted each time
};

inline constexpr std::size_t kMaxYamlNodes = 50'000;
inline constexpr std::size_t kMaxYamlDepth = 64;

struct YamlResult {
  YamlPointer root;  // null if and only if the text could not be read as one document
  std::vector<Violation> violations;  // duplicate keys leave a root
};

// `what` names the text in messages: "document", "value".
YamlResult ParseYaml(std::string_view text, std::string_view what);

// At most `bytes` of the text, cut between characters, with "…" where something was cut and "?" for
// what is not UTF-8.
std::string Shorten(std::string_view text, std::size_t bytes);

// As written, in quotes if it is text, shortened; "a list", "a map", "nothing".
std::string InWords(const YamlNode& node);

}  // namespace pelab::experiment
