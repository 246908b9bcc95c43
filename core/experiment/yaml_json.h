// A YAML tree as JSON. For parts of a document that are kept or read by themselves.
#pragma once

#include <nlohmann/json.hpp>

#include "core/experiment/yaml_tree.h"

namespace pelab::experiment {

// Numbers, true and false become what they look like, unless they are in quotes; everything else is
// text.
nlohmann::json JsonOf(const YamlNode& node);

}  // namespace pelab::experiment
