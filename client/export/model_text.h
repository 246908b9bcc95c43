// client/export/model.py, which `pelab export-model` writes into every folder.
#pragma once

#include <string_view>

namespace pelab::client {

extern const std::string_view kModelText;

}  // namespace pelab::client
