#include "client/options/own_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/unique_fd.h"
#include "core/catalog/catalog.h"
#include "core/experiment/yaml_json.h"
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
absl::Status InDocument(const NamedFile& file, const std::string& prefix,
                        const absl::Status& status) {
  v1::Violations violations;
  v1::Violation& violation = *violations.add_violations();
  violation.set_line(file.node->line);
  violation.set_column(file.node->column);
  violation.set_path(Concat(prefix, file.kind, ".file"));
  violation.set_value(file.node->text);
  violation.set_message(std::string(status.message()));
  return rpc::ViolationsError(violations);
}

// How long the sequences of splits are is only asked beside an encoding that declares that it does
// not extrapolate. Other documents go without, so that their texts stay those of earlier versions,
// by which sweeps and claim sheets are known again.
bool AsksForLengths(const std::vector<OwnFile>& files) {
  return std::any_of(files.begin(), files.end(), [](const OwnFile& file) {
    const auto* encoding = std::get_if<experiment::OwnEncoding>(&file.declaration);
    return encoding != nullptr && !encoding->extrapolates.value_or(true);
  });
}

// Whether some scalar is one of the words that make task.scored_classes nonzero.
bool LeavesZeroOut(const YamlNode& node) {
  if (node.text == "nonzero" || node.text == "published") return true;
  const auto leaves_out = [](const YamlPointer& item) { return LeavesZeroOut(*item); };
  return std::any_of(node.items.begin(), node.items.end(), leaves_out) ||
         std::any_of(node.members.begin(), node.members.end(),
                     [&](const auto& member) { return leaves_out(member.value); });
}

// The same for the chance without class 0.
bool AsksForNonzero(const YamlNode& sweep,
                    const google::protobuf::RepeatedPtrField<v1::Override>& overrides) {
  const auto says = [](const v1::Override& override) {
    const experiment::YamlResult value = experiment::ParseYaml(override.value(), "value");
    return value.root != nullptr && LeavesZeroOut(*value.root);
  };
  return LeavesZeroOut(sweep) || std::any_of(overrides.begin(), overrides.end(), says);
}

struct NeededValues {
  bool lengths = false;
  bool nonzero = false;
};

std::string DeclaredText(experiment::Declaration declaration, const NeededValues& needed) {
  if (auto* data = std::get_if<experiment::OwnTask>(&declaration); data != nullptr) {
    for (experiment::OwnSplit& split : data->splits) {
      if (!needed.lengths) split.longest = 0;
      if (!needed.nonzero) split.chance_nonzero.reset();
    }
  }
  return experiment::ToJson(declaration);
}

}  // namespace

absl::StatusOr<std::vector<OwnFile>> ReadOwnFiles(
    const std::string& document, const std::string& file_name,
    google::protobuf::RepeatedPtrField<v1::Override>* overrides) {
  const experiment::YamlResult yaml = experiment::ParseYaml(document, "document");
  if (yaml.root == nullptr) return std::vector<OwnFile>();
  return ReadOwnFilesOf(*yaml.root, "", file_name, overrides);
}

absl::StatusOr<std::vector<OwnFile>> ReadOwnFilesOf(
    const YamlNode& sweep, const std::string& prefix, const std::string& file_name,
    google::protobuf::RepeatedPtrField<v1::Override>* overrides) {
  std::vector<OwnFile> files;
  std::vector<std::string> names;  // of `files`, as the document has them
  std::set<std::string> read;
  for (const NamedFile& named : FilesIn(sweep)) {
    const std::string& text = named.node->text;
    if (!read.insert(text).second) continue;
    auto file = ReadNamed(named, PathOf(text, file_name));
    if (!file.ok()) return InDocument(named, prefix, file.status());
    names.push_back(text);
    files.push_back(*std::move(file));
  }
  const NeededValues needed = {AsksForLengths(files), AsksForNonzero(sweep, *overrides)};
  for (std::size_t i = 0; i < files.size(); ++i) {
    v1::Override& override = *overrides->Add();
    override.set_field(Concat(experiment::kFileOverride, names[i]));
    override.set_value(DeclaredText(files[i].declaration, needed));
  }
  return files;
}

std::string FileOfOverride(const v1::Override& override) {
  const bool is_file = override.field().rfind(experiment::kFileOverride, 0) == 0;
  return is_file ? override.field().substr(experiment::kFileOverride.size()) : "";
}

namespace {

using Names = std::map<std::string, std::string>;

std::size_t OffsetOf(const std::string& text, const YamlNode& node) {
  std::size_t begin = 0;
  for (int line = 1; line < node.line && begin != std::string::npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  return begin == std::string::npos ? begin : begin + static_cast<std::size_t>(node.column) - 1;
}

// How the scalar is written there: plain, or in quotes without anything that needs an escape. Empty
// if it is written in another way.
std::string WrittenAt(const std::string& text, std::size_t at, const std::string& value) {
  for (const std::string& written : {value, Concat("'", value, "'"), Concat("\"", value, "\"")}) {
    if (at < text.size() && text.compare(at, written.size(), written) == 0) return written;
  }
  return "";
}

// Empty if some path cannot be replaced where it stands.
std::string RenameInText(std::string text, const YamlNode& root, const Names& names) {
  std::vector<std::pair<std::size_t, const YamlNode*>> places;
  for (const NamedFile& file : FilesIn(root)) {
    if (names.contains(file.node->text)) places.emplace_back(OffsetOf(text, *file.node), file.node);
  }
  std::sort(places.rbegin(), places.rend());  // from the end, so that earlier places stay
  for (const auto& [at, node] : places) {
    const std::string written = WrittenAt(text, at, node->text);
    if (written.empty()) return "";
    text.replace(at, written.size(), nlohmann::json(names.at(node->text)).dump());
  }
  return text;
}

std::string RenameInJson(const YamlNode& root, const Names& names) {
  nlohmann::json document = experiment::JsonOf(root);
  const auto rename = [&](nlohmann::json& item, std::string_view own) {
    if (!item.is_object() || item.value("name", nlohmann::json()) != own) return;
    const auto file = item.find("file");
    if (file == item.end() || !file->is_string()) return;
    const auto name = names.find(file->get<std::string>());
    if (name != names.end()) *file = name->second;
  };
  for (const auto& [kind, own] :
       {std::pair("pe", catalog::OwnPe().name), std::pair("task", catalog::OwnTask().name)}) {
    if (!document.contains(kind)) continue;
    nlohmann::json& items = document[kind];
    rename(items, own);
    if (!items.is_array()) continue;
    for (nlohmann::json& item : items) rename(item, own);
  }
  return document.dump(1) + "\n";
}

bool HasOnly(const std::string& document, const std::vector<std::string>& paths) {
  const experiment::YamlResult yaml = experiment::ParseYaml(document, "document");
  if (yaml.root == nullptr) return false;
  std::vector<std::string> there;
  for (const NamedFile& file : FilesIn(*yaml.root)) there.push_back(file.node->text);
  return there == paths;
}

}  // namespace

std::string RenameOwnFiles(const std::string& document, const Names& names) {
  const experiment::YamlResult yaml = experiment::ParseYaml(document, "document");
  if (yaml.root == nullptr) return document;
  std::vector<std::string> wanted;
  for (const NamedFile& file : FilesIn(*yaml.root)) {
    const auto name = names.find(file.node->text);
    wanted.push_back(name == names.end() ? file.node->text : name->second);
  }
  const std::string text = RenameInText(document, *yaml.root, names);
  return !text.empty() && HasOnly(text, wanted) ? text : RenameInJson(*yaml.root, names);
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
