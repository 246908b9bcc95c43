// Reads the canonical form and the job document strictly; canonical_writer.cc writes them.
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/json_text.h"
#include "core/experiment/analysis.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/check.h"
#include "core/experiment/job.h"
#include "core/experiment/violation.h"

namespace pelab::experiment {
namespace {

using catalog::Field;
using catalog::FieldType;
using catalog::Value;
using catalog::Values;
using Json = nlohmann::json;

constexpr std::size_t kMaxSpecBytes = 1 << 20;
constexpr std::size_t kMaxJobIdLength = 200;

std::string_view JsonTypeInWords(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  if (json.is_string()) return "text";
  if (json.is_boolean()) return "true or false";
  if (json.is_number()) return "a number";
  return "null";
}

std::string Shown(const Json& json) {
  constexpr std::size_t kLongest = 80;
  if (json.is_structured()) return std::string(JsonTypeInWords(json));
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kLongest) return text;
  // As Shorten of core/base/utf8.h, which the trainer cannot link.
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// The value if it has the field's type; the caller checks its range.
std::optional<Value> ReadValue(const Field& field, const Json& json) {
  switch (field.type) {
    case FieldType::kBool:
      if (json.is_boolean()) return Value(json.get<bool>());
      break;
    case FieldType::kInt:
      if (const auto number = IntegerOf<std::int64_t>(json)) return Value(*number);
      break;
    case FieldType::kReal:
      if (json.is_number()) return Value(json.get<double>());
      break;
    case FieldType::kChoice:
    case FieldType::kText:
      if (json.is_string()) return Value(json.get<std::string>());
      break;
    case FieldType::kChoiceSet: {
      if (!json.is_array()) break;
      std::vector<std::string> members;
      for (const Json& member : json) {
        if (!member.is_string()) return std::nullopt;
        members.push_back(member.get<std::string>());
      }
      return Value(std::move(members));
    }
    case FieldType::kIntSet: {
      if (!json.is_array()) break;
      std::vector<std::int64_t> members;
      for (const Json& member : json) {
        const auto number = IntegerOf<std::int64_t>(member);
        if (!number) return std::nullopt;
        members.push_back(*number);
      }
      return Value(std::move(members));
    }
  }
  return std::nullopt;
}

// Reads one document and collects its violations.
class Reader {
 public:
  std::vector<Violation> TakeViolations() { return std::move(violations_); }
  bool failed() const { return !violations_.empty(); }

  // The whole text as JSON, or nullopt after a violation.
  std::optional<Json> Parse(std::string_view text) {
    if (text.size() > kMaxSpecBytes) {
      Say("", std::to_string(text.size()) + " bytes",
          "at most " + std::to_string(kMaxSpecBytes) + " bytes",
          "the spec has " + std::to_string(text.size()) + " bytes; at most " +
              std::to_string(kMaxSpecBytes) + " are allowed");
      return std::nullopt;
    }
    if (const std::string why = WhyNotBounded(text); !why.empty()) {
      Say("", "", "JSON of at most " + std::to_string(kMaxJsonDepth) + " levels",
          "the spec " + why);
      return std::nullopt;
    }
    try {
      return ParseWithoutDuplicates(text);
    } catch (const Json::parse_error& error) {
      Say("", "", "JSON",
          "the spec is not valid JSON: broken at byte " + std::to_string(error.byte));
    } catch (const Json::exception&) {
      Say("", "", "JSON", "the spec is not valid JSON: a number is too large");
    }
    return std::nullopt;
  }

  std::optional<Job> ReadJob(const Json& json, const std::string& path) {
    if (!IsObject(json, path)) return std::nullopt;
    Job job;
    ReadInt(json, path, "format", catalog::kCanonicalFormat, catalog::kCanonicalFormat);
    constexpr std::int64_t kMaxSeed = (std::int64_t{1} << 53) - 1;
    job.seed = ReadInt(json, path, "seed", 0, kMaxSeed);
    const catalog::Entry* pe = ReadEntry(json, path, "pe", catalog::PesAndOwn());
    const catalog::Entry* task = ReadEntry(json, path, "task", catalog::TasksAndOwn());
    OnlyMembers(json, path, {"format", "model", "pe", "seed", "task", "train"});
    if (pe == nullptr || task == nullptr) return std::nullopt;
    job.pe = pe->name;
    job.pe_version = pe->version;
    job.task = task->name;
    job.task_version = task->version;
    ReadValues(json, path, job);
    if (failed()) return std::nullopt;
    for (Violation& violation : CheckJob(job)) violations_.push_back(std::move(violation));
    return job;
  }

  std::vector<Analysis> ReadAnalyses(const Json& json) {
    std::vector<Analysis> analyses;
    if (!json.is_array()) {
      Say("analyses", Shown(json), "a list", "analyses must be a list, not " + Shown(json));
      return analyses;
    }
    for (std::size_t i = 0; i < json.size(); ++i) {
      const std::string path = "analyses[" + std::to_string(i) + "]";
      if (auto analysis = ReadAnalysis(json[i], path)) analyses.push_back(std::move(*analysis));
    }
    return analyses;
  }

  std::string ReadJobId(const Json& json) {
    const auto found = json.find("job");
    if (found != json.end() && found->is_string()) {
      std::string id = found->get<std::string>();
      if (!id.empty() && id.size() <= kMaxJobIdLength) return id;
    }
    const std::string shown = found == json.end() ? "missing" : Shown(*found);
    const std::string allowed = "text of 1 to " + std::to_string(kMaxJobIdLength) + " bytes";
    Say("job", shown, allowed, "job must be " + allowed + "; it is " + shown);
    return "";
  }

  // `pe` is set if the members are that PE's fields; the message then says why the PE lacks a
  // field.
  void OnlyMembers(const Json& json, const std::string& path,
                   const std::set<std::string_view>& known, const std::string& pe = "") {
    for (const auto& [name, value] : json.items()) {
      if (known.count(name) > 0) continue;
      Unknown(path, name, {known.begin(), known.end()}, "member",
              catalog::WhyNoField(pe, "pe." + name));
    }
  }

  bool IsObject(const Json& json, const std::string& path) {
    if (json.is_object()) return true;
    const std::string name = path.empty() ? "the spec" : path;
    Say(path, Shown(json), "an object", name + " must be an object, not " + Shown(json));
    return false;
  }

 private:
  Json ParseWithoutDuplicates(std::string_view text) {
    std::vector<std::set<std::string>> open;
    const auto watch = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::object_start) open.emplace_back();
      if (event == Json::parse_event_t::object_end) open.pop_back();
      if (event == Json::parse_event_t::key &&
          !open.back().insert(parsed.get<std::string>()).second) {
        Say(parsed.get<std::string>(), Shown(parsed), "each name once",
            Shown(parsed) + " is there twice");
      }
      return true;
    };
    return Json::parse(text.begin(), text.end(), watch);
  }

  std::int64_t ReadInt(const Json& json, const std::string& path, const char* name,
                       std::int64_t least, std::int64_t most) {
    const auto found = json.find(name);
    const auto value = found == json.end() ? std::nullopt : IntegerOf<std::int64_t>(*found);
    if (value && *value >= least && *value <= most) return *value;
    const std::string shown = found == json.end() ? "missing" : Shown(*found);
    const std::string allowed =
        least == most ? std::to_string(least)
                      : "an integer from " + std::to_string(least) + " to " + std::to_string(most);
    const std::string full = Join(path, name);
    Say(full, shown, allowed, full + " is " + shown + "; it must be " + allowed);
    return least;
  }

  // The catalog entry of a {"name", "version"} object; its other members are read elsewhere.
  const catalog::Entry* ReadEntry(const Json& json, const std::string& path, const char* kind,
                                  const std::vector<catalog::Entry>& entries) {
    const std::string full = Join(path, kind);
    const auto found = json.find(kind);
    if (found == json.end()) {
      Say(full, "missing", "an object", full + " is missing");
      return nullptr;
    }
    return IsObject(*found, full) ? ReadNamed(*found, full, kind, entries) : nullptr;
  }

  const catalog::Entry* ReadNamed(const Json& json, const std::string& path,
                                  const std::string& kind,
                                  const std::vector<catalog::Entry>& entries) {
    const auto name = json.find("name");
    if (name == json.end() || !name->is_string()) {
      const std::string shown = name == json.end() ? "missing" : Shown(*name);
      Say(path + ".name", shown, "the name of a " + kind,
          path + ".name is " + shown + "; it must be the name of a " + kind);
      return nullptr;
    }
    std::vector<std::string_view> known;
    for (const catalog::Entry& entry : entries) {
      if (entry.name == name->get<std::string>()) {
        ReadInt(json, path, "version", entry.version, entry.version);
        return &entry;
      }
      known.push_back(entry.name);
    }
    Unknown(path, name->get<std::string>(), known, kind);
    return nullptr;
  }

  void ReadValues(const Json& json, const std::string& path, Job& job) {
    std::map<std::string_view, std::set<std::string_view>> known = {
        {"model", {}}, {"train", {}}, {"pe", {"name", "version"}}, {"task", {"name", "version"}}};
    Values resolved = WithCoordinates(job);
    for (const Field& field : catalog::Fields()) {
      if (!catalog::Applies(field, job.pe, job.task, resolved)) continue;
      const auto [group, member] = SplitName(field.name);
      known[group].insert(member);
      const auto object = json.find(group);
      if (object == json.end() || !object->is_object()) continue;  // reported below
      const auto value = ReadMember(*object, path, field, member);
      if (!value) continue;
      resolved.emplace(field.name, *value);
      job.values.emplace(field.name, *value);
    }
    for (const auto& [group, members] : known) {
      const auto object = json.find(group);
      const std::string full = Join(path, group);
      if (object == json.end()) {
        Say(full, "missing", "an object", full + " is missing");
      } else if (IsObject(*object, full)) {
        OnlyMembers(*object, full, members, group == "pe" ? job.pe : "");
      }
    }
  }

  std::optional<Value> ReadMember(const Json& object, const std::string& path, const Field& field,
                                  std::string_view member) {
    const std::string full = Join(path, field.name);
    const auto found = object.find(member);
    if (found == object.end()) {
      if (field.legacy) return field.legacy;
      Say(full, "missing", catalog::Allowed(field),
          full + " is missing; it must be " + catalog::Allowed(field));
      return std::nullopt;
    }
    auto value = ReadValue(field, *found);
    if (value && catalog::CheckValue(field, *value).empty()) return value;
    Say(full, Shown(*found), catalog::Allowed(field),
        full + " is " + Shown(*found) + "; it must be " + catalog::Allowed(field));
    return std::nullopt;
  }

  std::optional<Analysis> ReadAnalysis(const Json& json, const std::string& path) {
    if (!IsObject(json, path)) return std::nullopt;
    const catalog::Entry* entry = ReadNamed(json, path, "analysis", catalog::Analyses());
    OnlyMembers(json, path, {"name", "parameters", "version"});
    if (entry == nullptr) return std::nullopt;
    const auto parameters = json.find("parameters");
    const std::string full = path + ".parameters";
    if (parameters == json.end()) {
      Say(full, "missing", "an object", full + " is missing");
      return std::nullopt;
    }
    if (!IsObject(*parameters, full)) return std::nullopt;
    Analysis analysis;
    analysis.name = entry->name;
    analysis.version = entry->version;
    std::set<std::string_view> known;
    for (const Field& field : catalog::Fields()) {
      if (field.owner != entry->name ||
          !catalog::Applies(field, entry->name, "", analysis.parameters)) {
        continue;
      }
      known.insert(SplitName(field.name).second);
      const auto value = ReadMember(*parameters, path, field, SplitName(field.name).second);
      if (value) analysis.parameters.emplace(field.name, *value);
    }
    OnlyMembers(*parameters, full, known);
    return analysis;
  }

  void Unknown(const std::string& path, const std::string& name,
               const std::vector<std::string_view>& known, const std::string& kind = "member",
               const std::string& why = "") {
    std::string allowed;
    for (const std::string_view candidate : known) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(candidate);
    }
    const std::string near(catalog::DidYouMean(name, known));
    Say(Join(path, name), Shown(name), allowed,
        "unknown " + kind + " " + Shown(name) + (path.empty() ? "" : " in " + path) + "; " +
            (near.empty() ? "" : "did you mean " + near + "? ") + "known: " + allowed +
            (why.empty() ? "" : "; " + why));
  }

  static std::string Join(const std::string& path, std::string_view name) {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  }

  void Say(std::string path, std::string value, std::string allowed, std::string message) {
    constexpr std::size_t kMostViolations = 100;
    if (violations_.size() >= kMostViolations) return;
    Violation violation;
    violation.path = std::move(path);
    violation.value = std::move(value);
    violation.allowed = std::move(allowed);
    violation.message = std::move(message);
    violations_.push_back(std::move(violation));
  }

  std::vector<Violation> violations_;
};

}  // namespace

CanonicalResult FromCanonicalJson(std::string_view json) {
  Reader reader;
  CanonicalResult result;
  if (const auto parsed = reader.Parse(json)) result.job = reader.ReadJob(*parsed, "");
  if (reader.failed()) result.job.reset();
  result.violations = reader.TakeViolations();
  return result;
}

JobDocumentResult FromJobDocument(std::string_view json) {
  Reader reader;
  JobDocumentResult result;
  const auto parsed = reader.Parse(json);
  if (parsed && reader.IsObject(*parsed, "")) {
    JobDocument document;
    std::optional<Job> job;
    if (parsed->contains("format")) {
      document.job_id = "job";
      job = reader.ReadJob(*parsed, "");
    } else {
      document.job_id = reader.ReadJobId(*parsed);
      reader.OnlyMembers(*parsed, "", {"analyses", "job", "spec"});
      job = reader.ReadJob(parsed->value("spec", Json()), "spec");
      document.analyses = reader.ReadAnalyses(parsed->value("analyses", Json::array()));
    }
    if (job) document.job = std::move(*job);
    if (job && !reader.failed()) result.document = std::move(document);
  }
  result.violations = reader.TakeViolations();
  return result;
}

}  // namespace pelab::experiment
