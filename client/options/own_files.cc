#include "client/options/own_files.h"

#include <filesystem>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/unique_fd.h"
#include "core/catalog/catalog.h"
#include "core/experiment/yaml_tree.h"
#include "core/rpc/status.h"
#include "core/torchscript/archive.h"

namespace pelab::client {
namespace {

using experiment::YamlNode;
using experiment::YamlPointer;

const YamlNode* Member(const YamlNode& map, std::string_view key) {
  for (const experiment::YamlMember& member : map.members) {
    if (member.key->text == key) return member.value.get();
  }
  return nullptr;
}

// The scalars that name files, in document order.
std::vector<const YamlNode*> FilesIn(const YamlNode& root) {
  std::vector<const YamlNode*> files;
  const YamlNode* pe = Member(root, "pe");
  if (pe == nullptr) return files;
  const auto look = [&](const YamlNode& item) {
    const YamlNode* name = Member(item, "name");
    const YamlNode* file = Member(item, "file");
    if (name == nullptr || file == nullptr || file->kind != YamlNode::Kind::kScalar) return;
    if (name->text == catalog::OwnPe().name) files.push_back(file);
  };
  look(*pe);
  for (const YamlPointer& item : pe->items) look(*item);
  return files;
}

std::string PathOf(const std::string& named, const std::string& file_name) {
  const std::filesystem::path path(named);
  return path.is_absolute() ? named
                            : (std::filesystem::path(DirectoryOf(file_name)) / path).string();
}

// The error as one of the document, with its place.
absl::Status InDocument(const YamlNode& file, const absl::Status& status) {
  v1::Violations violations;
  v1::Violation& violation = *violations.add_violations();
  violation.set_line(file.line);
  violation.set_column(file.column);
  violation.set_path("pe.file");
  violation.set_value(file.text);
  violation.set_message(std::string(status.message()));
  return rpc::ViolationsError(violations);
}

}  // namespace

absl::StatusOr<std::vector<OwnFile>> ReadOwnFiles(
    const std::string& document, const std::string& file_name,
    google::protobuf::RepeatedPtrField<v1::Override>* overrides) {
  std::vector<OwnFile> files;
  const experiment::YamlResult yaml = experiment::ParseYaml(document, "document");
  if (yaml.root == nullptr) return files;
  std::set<std::string> read;
  for (const YamlNode* file : FilesIn(*yaml.root)) {
    if (!read.insert(file->text).second) continue;
    const std::string path = PathOf(file->text, file_name);
    const auto encoding = torchscript::ReadEncodingFile(path);
    if (!encoding.ok()) return InDocument(*file, encoding.status());
    v1::Override& override = *overrides->Add();
    override.set_field(Concat(experiment::kFileOverride, file->text));
    override.set_value(experiment::ToJson(*encoding));
    files.push_back({path, encoding->sha256, encoding->bytes});
  }
  return files;
}

absl::Status SendOwnFiles(const std::vector<OwnFile>& files, Coordinator& coordinator) {
  for (const OwnFile& file : files) {
    const auto send = [&](const std::function<absl::Status(const v1::PutFileRequest&)>& write) {
      v1::PutFileRequest request;
      request.mutable_header()->set_sha256(file.sha256);
      request.mutable_header()->set_bytes(file.bytes);
      PELAB_RETURN_IF_ERROR(write(request));
      PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(ResolveLinks(file.path)));
      return ReadPieces(fd.get(), file.path, [&](std::string piece) {
        request.set_chunk(std::move(piece));
        return write(request);
      });
    };
    const auto sent = coordinator.PutFile(send);
    if (!sent.ok()) return Annotate(sent.status(), Concat("cannot send ", file.path));
  }
  return absl::OkStatus();
}

}  // namespace pelab::client
