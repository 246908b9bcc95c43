// Messages of SQLite's errors.
#pragma once

#include <SQLiteCpp/Exception.h>

#include <string>

#include "core/base/utf8.h"

namespace pelab::migrations {

// Quotes SQLite. It can quote what it finds in a damaged file, so the text is shortened and made
// UTF-8. Pure function: thread-safe.
inline std::string MessageOf(const SQLite::Exception& error) { return Shorten(error.what(), 1000); }

}  // namespace pelab::migrations
