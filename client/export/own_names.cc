#include "client/export/own_names.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "client/options/own_files.h"
#include "core/base/file.h"
#include "core/base/strings.h"
#include "core/experiment/declaration.h"
#include "core/experiment/yaml_json.h"
#include "core/experiment/yaml_tree.h"

namespace pelab::client {
namespace {

namespace fs = std::filesystem;

// Those that came with the document, and those that it declares itself, as the sweep of a sheet
// does. By path.
std::map<std::string, std::string> HashesOf(const v1::Sweep& sweep) {
  std::map<std::string, std::string> hashes;
  const auto add = [&](const std::string& path, const std::string& declaration) {
    const auto parsed = experiment::ParseDeclaration(declaration);
    if (!path.empty() && parsed.problem.empty()) {
      hashes[path] = experiment::Sha256Of(parsed.declaration);
    }
  };
  const experiment::YamlResult yaml = experiment::ParseYaml(sweep.document(), "document");
  if (yaml.root != nullptr) {
    for (const experiment::YamlMember& member : yaml.root->members) {
      if (member.key->text != "files") continue;
      for (const experiment::YamlMember& file : member.value->members) {
        add(file.key->text, experiment::JsonOf(*file.value).dump());
      }
    }
  }
  for (const v1::Override& override : sweep.overrides()) {
    add(FileOfOverride(override), override.value());
  }
  return hashes;
}

class Places {
 public:
  explicit Places(const std::vector<std::string>& reserved) {
    for (const std::string& name : reserved) taken_[name] = "";
  }

  // Whether a file with this content can be there.
  bool Take(const std::string& name, const std::string& sha256) {
    const auto there = taken_.find(name);
    if (there != taken_.end()) return there->second == sha256;
    const auto clashes = [&](const auto& other) {
      // A file cannot be a folder, too.
      return name.starts_with(other.first + "/") || other.first.starts_with(name + "/");
    };
    if (std::any_of(taken_.begin(), taken_.end(), clashes)) return false;
    taken_[name] = sha256;
    return true;
  }

 private:
  std::map<std::string, std::string> taken_;  // name: hash; the export's own have none
};

// The path below the folder; empty if it leads out of the folder or is no plain one.
std::string Inside(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  const bool plain = std::all_of(normal.begin(), normal.end(), [](const fs::path& part) {
    return IsPlainFileName(part.string());
  });
  return normal.is_relative() && plain ? normal.string() : "";
}

std::string Elsewhere(const std::string& path, const std::string& sha256, Places& places) {
  const std::string last = fs::path(path).filename().string();
  for (std::size_t digits = 8; digits < sha256.size(); ++digits) {
    const std::string hash = sha256.substr(0, digits);
    std::string name = Concat("files/", hash, IsPlainFileName(last) ? Concat("-", last) : "");
    if (places.Take(name, sha256)) return name;
  }
  return Concat("files/", sha256);
}

}  // namespace

ExportedDocument PlaceOwnFiles(const v1::Sweep& sweep, const std::vector<std::string>& reserved) {
  ExportedDocument out{.text = sweep.document()};
  Places places(reserved);
  for (const auto& [path, sha256] : HashesOf(sweep)) {
    const std::string inside = Inside(path);
    const bool stays = !inside.empty() && places.Take(inside, sha256);
    out.files.push_back({.path = path, .name = stays ? inside : "", .sha256 = sha256});
  }
  std::map<std::string, std::string> renamed;
  for (ExportedFile& file : out.files) {
    if (!file.name.empty()) continue;
    file.name = Elsewhere(file.path, file.sha256, places);
    renamed[file.path] = file.name;
  }
  if (!renamed.empty()) out.text = RenameOwnFiles(out.text, renamed);
  return out;
}

}  // namespace pelab::client
