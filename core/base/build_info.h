// The sources this program was built from. Standard library only: the trainer uses it too. Pure
// functions; thread-safe.
#pragma once

#include <string>

namespace pelab {

// The git commit of the sources as 12 hexadecimal digits; empty if it is not known.
std::string BuildCommit();
// Whether files that git knows had been changed since that commit.
bool BuildIsDirty();

// For --version: "0.1.0 (commit f150fd4f0f1e)", "0.1.0 (commit f150fd4f0f1e, with changes)", or
// "0.1.0" if the commit is not known.
std::string VersionText();

}  // namespace pelab
