#include "core/experiment/yaml_json.h"

#include "core/experiment/yaml_value.h"

namespace pelab::experiment {

using Kind = YamlNode::Kind;

nlohmann::json JsonOf(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kList: {
      nlohmann::json list = nlohmann::json::array();
      for (const YamlPointer& item : node.items) list.push_back(JsonOf(*item));
      return list;
    }
    case Kind::kMap: {
      nlohmann::json map = nlohmann::json::object();
      for (const YamlMember& member : node.members) map[member.key->text] = JsonOf(*member.value);
      return map;
    }
    case Kind::kScalar:
      break;
  }
  if (const auto integer = ReadInteger(node)) return *integer;
  if (const auto real = ReadReal(node)) return *real;
  if (!node.quoted && (node.text == "true" || node.text == "false")) return node.text == "true";
  return node.text;
}

}  // namespace pelab::experiment
