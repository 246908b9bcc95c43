#include "client/options/own_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/unique_fd.h"
#include "core/catalog/catalog.h"
#include "core/experiment/yaml_tree.h"
#include "core/rpc/status.h"

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

// A scalar that names a file, and the key under which its item stands.
struct NamedFile {
  const YamlNode* node;
  const char* kind;  // "pe" or "task"
};

// In document order.
std::vector<NamedFile> FilesIn(const YamlNode& root) {
  std::vector<NamedFile> files;
  for (const auto& [kind, own] :
       {std::pair("pe", catalog::OwnPe().name), std::pair("task", catalog::OwnTask().name)}) {
    const auto look = [&, kind = kind, own = own](const YamlNode& item) {
      const YamlNode* name = Member(item, "name");
      const YamlNode* file = Member(item, "file");
      if (name == nullptr || file == nullptr || file->kind != YamlNode::Kind::kScalar) return;
      if (name->text == own) files.push_back({file, kind});
    };
    const YamlNode* items = Member(root, kind);
    if (items == nullptr) continue;
    look(*items);
    for (const YamlPointer& item : items->items) look(*item);
  }
  return files;
}

std::string PathOf(const std::string& named, const std::string& file_name) {
  const std::filesystem::path path(named);
  return path.is_absolute()
             ? named
             : (std::filesystem::path(DirectoryOf(file_name)) / path).lexically_normal().string();
}

absl::StatusOr<OwnFile> ReadNamed(const NamedFile& named, const std::string& path) {
  if (std::string_view(named.kind) == "pe") return own_files::ReadOwnEncoding(path);
  PELAB_ASSIGN_OR_RETURN(own_files::OwnData data, own_files::ReadOwnData(path));
  return std::move(data.file);
}

// The error as one of the document, with its place.
absl::Status InDocument(const NamedFile& file, const absl::Status& status) {
  v1::Violations violations;
  v1::Violation& violation = *violations.add_violations();
  violation.set_line(file.node->line);
  violation.set_column(file.node->column);
  violation.set_path(Concat(file.kind, ".file"));
  violation.set_value(file.node->text);
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
  for (const NamedFile& named : FilesIn(*yaml.root)) {
    const std::string& text = named.node->text;
    if (!read.insert(text).second) continue;
    auto file = ReadNamed(named, PathOf(text, file_name));
    if (!file.ok()) return InDocument(named, file.status());
    v1::Override& override = *overrides->Add();
    override.set_field(Concat(experiment::kFileOverride, text));
    override.set_value(experiment::ToJson(file->declaration));
    files.push_back(*std::move(file));
  }
  return files;
}

std::string FileOfOverride(const v1::Override& override) {
  const bool is_file = override.field().rfind(experiment::kFileOverride, 0) == 0;
  return is_file ? override.field().substr(experiment::kFileOverride.size()) : "";
}

namespace {

v1::PutFileRequest HeaderOf(const OwnFile& file) {
  v1::PutFileRequest request;
  request.mutable_header()->set_sha256(experiment::Sha256Of(file.declaration));
  request.mutable_header()->set_bytes(experiment::BytesOf(file.declaration));
  return request;
}

absl::Status SendFrom(std::uint64_t offset, const OwnFile& file, Coordinator& coordinator) {
  v1::PutFileRequest request = HeaderOf(file);
  request.mutable_header()->set_offset(offset);
  const auto send = [&](const auto& write) -> absl::Status {
    PELAB_RETURN_IF_ERROR(write(request));
    PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(ResolveLinks(file.path)));
    if (lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
      return ErrnoStatus(errno, Concat("cannot read ", file.path));
    }
    return ReadPieces(fd.get(), file.path, [&](std::string piece) {
      request.set_chunk(std::move(piece));
      return write(request);
    });
  };
  return coordinator.PutFile(send).status();
}

// Sends what the coordinator lacks of the file: nothing, the part after a broken upload, or all.
absl::Status SendOnce(const OwnFile& file, Coordinator& coordinator) {
  v1::PutFileRequest request = HeaderOf(file);
  request.mutable_header()->set_ask(true);
  PELAB_ASSIGN_OR_RETURN(
      const v1::PutFileResponse there,
      coordinator.PutFile([&](const auto& write) -> absl::Status { return write(request); }));
  if (there.already_there()) return absl::OkStatus();
  const absl::Status sent = SendFrom(there.kept(), file, coordinator);
  // Somebody else's upload may have left other bytes.
  const bool of_others = there.kept() > 0 && absl::IsInvalidArgument(sent);
  return of_others ? SendFrom(0, file, coordinator) : sent;
}

}  // namespace

absl::Status SendOwnFiles(const std::vector<OwnFile>& files, Coordinator& coordinator) {
  constexpr int kTries = 5;
  for (const OwnFile& file : files) {
    absl::Status sent = SendOnce(file, coordinator);
    for (int i = 1; i < kTries && absl::IsUnavailable(sent); ++i) {
      absl::SleepFor(absl::Seconds(i));
      sent = SendOnce(file, coordinator);
    }
    if (!sent.ok()) return Annotate(sent, Concat("cannot send ", file.path));
  }
  return absl::OkStatus();
}

}  // namespace pelab::client
