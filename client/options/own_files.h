// The files of own encodings and data that a sweep file names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/source/data_source.h"
#include "core/experiment/yaml_tree.h"
#include "core/own_files/own_file.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

using own_files::OwnFile;

// Reads each file that an item {name: own, file: …} of the document names. Relative paths begin
// at the document's folder. Adds what the files declare to `overrides`
// (experiment::kFileOverride), so that the document can be checked without them. Skips items
// without a usable name or file: the check of the document reports them. A missing or wrong file
// is INVALID_ARGUMENT, with its place in the document.
absl::StatusOr<std::vector<OwnFile>> ReadOwnFiles(
    const std::string& document, const std::string& file_name,
    google::protobuf::RepeatedPtrField<v1::Override>* overrides);

// The same for a sweep that is a part of a document. `prefix` ("sweep.") is the key of that
// part: messages then name sweep.pe.file in place of pe.file.
absl::StatusOr<std::vector<OwnFile>> ReadOwnFilesOf(
    const experiment::YamlNode& sweep, const std::string& prefix, const std::string& file_name,
    google::protobuf::RepeatedPtrField<v1::Override>* overrides);

// If the override is what a file declares: the file's path, as the document has it. Otherwise (an
// override of --set) empty.
std::string FileOfOverride(const v1::Override& override);

// Returns the document with the paths of files of own encodings and data replaced: `names` has the
// new path for each old one. Everything else stays as it is written. If a path is written in a way
// that cannot be replaced in its place, the whole document is written anew, as JSON.
std::string RenameOwnFiles(const std::string& document,
                           const std::map<std::string, std::string>& names);

// Sends the files that the coordinator lacks. Continues an upload that broke off, and sends only
// the rest. Tries a few times while the coordinator is away.
absl::Status SendOwnFiles(const std::vector<OwnFile>& files, Coordinator& coordinator);

}  // namespace pelab::client
