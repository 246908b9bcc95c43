#include "core/event/trainer_line.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/regular_file.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/event/check.h"

namespace pelab::event {
namespace {

using Json = nlohmann::json;

// Thrown for a malformed line and caught in one place: the checks below are easier to read than if
// each returned a status.
class BadLine : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string Excerpt(absl::string_view text) {
  constexpr std::size_t kMostBytes = 120;
  return Shorten({text.data(), text.size()}, kMostBytes);
}

// The members of one event's JSON object, each checked when it is read.
class Members {
 public:
  Members(const Json& object, std::string event) : object_(object), event_(std::move(event)) {}

  const Json& At(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end())
      throw BadLine(absl::StrCat("event ", event_, " has no \"", name, "\""));
    return *found;
  }
  bool Has(const char* name) const { return object_.contains(name) && !object_.at(name).is_null(); }

  std::int64_t Int(const char* name) const { return Int<std::int64_t>(name, 64); }
  std::int32_t Int32(const char* name) const { return Int<std::int32_t>(name, 32); }
  // JSON has no infinities. A loss that is not finite comes as an `error` event.
  double Real(const char* name) const {
    const Json& value = At(name);
    if (!value.is_number()) Throw(name, value, "a number");
    return value.get<double>();
  }
  std::string Text(const char* name) const {
    const Json& value = At(name);
    if (!value.is_string()) Throw(name, value, "a string");
    return value.get<std::string>();
  }
  // Reads a path that stays below the trainer's directory.
  std::string File(const char* name) const {
    const std::filesystem::path path = Text(name);
    bool inside = !path.empty() && path.is_relative();
    for (const auto& part : path) inside = inside && part != "..";
    if (!inside) Throw(name, At(name), "a path below the work directory");
    return path.string();
  }
  [[noreturn]] void Throw(const char* name, const Json& value, absl::string_view allowed) const {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    throw BadLine(absl::StrCat("event ", event_, ": \"", name, "\" is ", Excerpt(text),
                               "; allowed: ", allowed));
  }

 private:
  template <typename T>
  T Int(const char* name, int bits) const {
    const Json& value = At(name);
    if (!value.is_number_integer()) Throw(name, value, "an integer");
    const std::optional<T> number = IntegerOf<T>(value);
    if (!number) Throw(name, value, absl::StrCat("an integer of ", bits, " bits"));
    return *number;
  }

  const Json& object_;
  const std::string event_;
};

// Reads the members that have the names of the message's fields; an optional field may be absent.
void ReadNumbers(const Members& members, google::protobuf::Message* message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const Field* field = type.field(i);
    const char* name = field->name().c_str();
    if (field->has_presence() && !members.Has(name)) continue;
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        message->GetReflection()->SetInt32(message, field, members.Int32(name));
        break;
      case Field::CPPTYPE_INT64:
        message->GetReflection()->SetInt64(message, field, members.Int(name));
        break;
      default:
        message->GetReflection()->SetDouble(message, field, members.Real(name));
    }
  }
}

FactLine ReadHello(const Members& members, const Json& object) {
  if (const auto protocol = members.Int("protocol"); protocol != 1) {
    throw BadLine(absl::StrCat("the trainer speaks protocol ", protocol, "; this program reads 1"));
  }
  FactLine line;
  v1::Started* started = line.event.mutable_started();
  started->set_start_epoch(members.Int32("start_epoch"));
  started->set_epochs(members.Int32("epochs"));
  ReadNumbers(members, started->mutable_execution());
  started->set_better_alone(object.contains("step_seconds") && !object.contains("members"));
  Json environment = object;
  environment.erase("event");
  environment.erase("job");
  started->set_environment_json(environment.dump());
  return line;
}

FactLine ReadEpoch(const Members& members) {
  FactLine line;
  ReadNumbers(members, line.event.mutable_epoch());
  return line;
}

// Canonical JSON: nlohmann's objects are sorted by name, and its numbers are the shortest that read
// back the same. The coordinator's parameters are words and integers only; for these the result
// also follows RFC 8785.
std::string ParametersJson(const Members& members) {
  const Json& parameters = members.At("parameters");
  if (!parameters.is_object()) members.Throw("parameters", parameters, "an object");
  return parameters.dump();
}

// The five layers x heads arrays of a head ablation. The first array read sets the shape and the
// entries that do not exist (null); the others must agree.
class MatrixReader {
 public:
  MatrixReader(const Members& members, v1::HeadAblation* ablation)
      : members_(members), ablation_(ablation) {}

  void ReadCounts(const char* name, google::protobuf::RepeatedField<std::int64_t>* counts) {
    ForEachEntry(name, [&](const Json* entry) {
      if (entry == nullptr) return counts->Add(0);
      const std::optional<std::int64_t> count = IntegerOf<std::int64_t>(*entry);
      if (!count) members_.Throw(name, *entry, "integers of 64 bits");
      counts->Add(*count);
    });
  }
  void ReadReals(const char* name, google::protobuf::RepeatedField<double>* numbers) {
    ForEachEntry(name, [&](const Json* entry) {
      if (entry == nullptr) return numbers->Add(0);
      if (!entry->is_number()) members_.Throw(name, *entry, "numbers");
      numbers->Add(entry->get<double>());
    });
  }

 private:
  template <typename Add>
  void ForEachEntry(const char* name, const Add& add) {
    const Json& rows = members_.At(name);
    const std::size_t heads =
        rows.is_array() && !rows.empty() && rows[0].is_array() ? rows[0].size() : 0;
    if (heads == 0) members_.Throw(name, rows, "a layers x heads array of arrays");
    const bool first = ablation_->layers() == 0;
    if (first) {
      ablation_->set_layers(static_cast<int>(rows.size()));
      ablation_->set_heads(static_cast<int>(heads));
    }
    if (rows.size() != static_cast<std::size_t>(ablation_->layers())) {
      members_.Throw(name, rows, absl::StrCat(ablation_->layers(), " layers, as in \"correct\""));
    }
    int index = 0;
    for (const Json& row : rows) {
      if (!row.is_array() || row.size() != static_cast<std::size_t>(ablation_->heads())) {
        members_.Throw(name, row, absl::StrCat(ablation_->heads(), " entries a layer"));
      }
      for (const Json& entry : row) {
        if (first) ablation_->add_missing(entry.is_null());
        if (entry.is_null() != ablation_->missing(index++)) {
          members_.Throw(name, row, "null exactly where \"correct\" has it");
        }
        add(entry.is_null() ? nullptr : &entry);
      }
    }
  }

  const Members& members_;
  v1::HeadAblation* const ablation_;
};

FactLine ReadHeadAblation(const Members& members) {
  FactLine line;
  v1::HeadAblation* ablation = line.event.mutable_head_ablation();
  ablation->set_version(members.Int32("version"));
  ablation->set_parameters_json(ParametersJson(members));
  ablation->set_total(members.Int("total"));
  ablation->set_intact_correct(members.Int("intact_correct"));
  ablation->set_intact_nll(members.Real("intact_nll"));
  ablation->set_chance(members.Real("chance"));
  ablation->set_seconds(members.Real("seconds"));
  MatrixReader reader(members, ablation);
  reader.ReadCounts("correct", ablation->mutable_correct());
  reader.ReadCounts("lost", ablation->mutable_lost());
  reader.ReadCounts("gained", ablation->mutable_gained());
  reader.ReadReals("nll", ablation->mutable_nll());
  reader.ReadReals("nll_standard_error", ablation->mutable_nll_standard_error());
  const auto& missing = ablation->missing();
  if (std::find(missing.begin(), missing.end(), true) == missing.end()) ablation->clear_missing();
  return line;
}

FactLine ReadAnalysis(const Members& members, const std::string& directory) {
  const std::string file = members.File("file");
  const absl::StatusOr<std::string> text =
      ReadRegularFile(absl::StrCat(directory, "/", file), kAnalysisBytes);
  if (!text.ok()) throw BadLine(absl::StrCat("event analysis: ", text.status().message()));
  FactLine line;
  v1::AnalysisResult* result = line.event.mutable_analysis();
  result->set_name(members.Text("name"));
  result->set_version(members.Int32("version"));
  result->set_parameters_json(ParametersJson(members));
  result->set_result_json(*text);
  if (members.Has("seconds")) result->set_seconds(members.Real("seconds"));
  return line;
}

DoneLine ReadDone(const Members& members) {
  DoneLine done;
  done.wall_seconds = members.Real("wall_seconds");
  const std::string wrong = WhatIsWrongWithSeconds("event done", "wall_seconds", done.wall_seconds);
  if (!wrong.empty()) throw BadLine(wrong);
  if (!members.Has("weights")) return done;
  const Json& object = members.At("weights");
  if (!object.is_object()) members.Throw("weights", object, "an object");
  const Members weights(object, "done: weights");
  done.weights_file = weights.File("file");
  // The coordinator stores the file under the last part of its path.
  if (!IsPlainFileName(std::filesystem::path(done.weights_file).filename().string())) {
    weights.Throw("file", object.at("file"), absl::StrCat("a file's name of ", kPlainFileName));
  }
  done.sha256 = weights.Text("sha256");
  if (!IsSha256(done.sha256))
    weights.Throw("sha256", object.at("sha256"), "64 hexadecimal digits in lower case");
  const std::int64_t bytes = weights.Int("bytes");
  if (bytes < 0) weights.Throw("bytes", object.at("bytes"), "an integer from 0 on");
  done.bytes = static_cast<std::uint64_t>(bytes);
  return done;
}

ErrorLine ReadError(const Members& members) {
  // A kind from a later version is still an error, and its message says what happened.
  const auto kind = state::ParseErrorKind(members.Text("kind"));
  return {kind.value_or(state::ErrorKind::kInternal), members.Text("message")};
}

using Directories = std::map<std::string, std::string>;

[[noreturn]] void ThrowOtherJob(const std::string& event, const std::string& named,
                                const Directories& given) {
  std::string words;
  for (const auto& [job, directory] : given) {
    absl::StrAppend(&words, words.empty() ? "\"" : ", \"", job, "\"");
  }
  throw BadLine(
      absl::StrCat("event ", event, " is of job \"", named, "\"; this trainer was given ", words));
}

TrainerLine ReadEvent(const Json& object, const std::string& event, const std::string& directory) {
  const Members members(object, event);
  if (event == "hello") return ReadHello(members, object);
  if (event == "epoch") return ReadEpoch(members);
  if (event == "checkpoint") return CheckpointLine{members.Int32("epoch"), members.File("file")};
  if (event == "head_ablation") return ReadHeadAblation(members);
  if (event == "analysis") return ReadAnalysis(members, directory);
  if (event == "done") return ReadDone(members);
  if (event == "error") return ReadError(members);
  return UnknownLine{event};
}

JobLine ReadLine(const Json& object, const Directories& directories) {
  const Members any(object, "line");
  const std::string event = any.Text("event");
  const std::string job = any.Text("job");
  const auto directory = directories.find(job);
  if (directory == directories.end()) ThrowOtherJob(event, job, directories);
  return {job, ReadEvent(object, event, directory->second)};
}

}  // namespace

absl::StatusOr<TrainerLine> ParseTrainerLine(absl::string_view line, absl::string_view job,
                                             const std::string& directory) {
  PELAB_ASSIGN_OR_RETURN(JobLine parsed, ParseTrainerLine(line, {{std::string(job), directory}}));
  return std::move(parsed.line);
}

absl::StatusOr<JobLine> ParseTrainerLine(absl::string_view line, const Directories& directories) {
  const std::string_view text(line.data(), line.size());
  const Json object = ParseJson<Json>(text);
  if (!object.is_object()) {
    const std::string why = WhyNotBounded(text);
    return absl::InvalidArgumentError(absl::StrCat("the trainer printed a line that ",
                                                   why.empty() ? "is not a JSON object" : why, ": ",
                                                   Excerpt(line)));
  }
  try {
    JobLine read = ReadLine(object, directories);
    const auto* fact = std::get_if<FactLine>(&read.line);
    const std::string wrong = fact == nullptr ? "" : WhatIsWrong(fact->event);
    if (wrong.empty()) return read;
    return absl::InvalidArgumentError(absl::StrCat("the trainer printed what cannot be: ", wrong));
  } catch (const BadLine& bad) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trainer printed a malformed line: ", bad.what()));
  } catch (const Json::exception& bad) {  // the text is not UTF-8
    return absl::InvalidArgumentError(
        absl::StrCat("the trainer printed a malformed line: ", bad.what()));
  }
}

}  // namespace pelab::event
