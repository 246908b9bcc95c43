// Chooses the places of files of own encodings and data in an exported folder. Pure functions:
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

struct ExportedFile {
  std::string path;    // as the document has it
  std::string name;    // in the folder, relative to sweep.yaml
  std::string sha256;  // of its content
};

struct ExportedDocument {
  // The sweep's document, in which a path is `name` if it would not lead to that file.
  std::string text;
  std::vector<ExportedFile> files;  // two may have one name, and then one content
};

// A file keeps its path if that stays in the folder and no file of the export is there. Otherwise
// it is files/HASH-NAME. `reserved` are the names of the export's own files.
ExportedDocument PlaceOwnFiles(const v1::Sweep& sweep, const std::vector<std::string>& reserved);

}  // namespace pelab::client
