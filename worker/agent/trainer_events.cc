#include "worker/agent/trainer_events.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

using Json = nlohmann::json;

// Thrown for a malformed line and caught in one place: the checks below read better than with a
// status each.
class BadLine : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string Excerpt(absl::string_view text) {
  constexpr std::size_t kMost = 120;
  return text.size() <= kMost ? std::string(text) : absl::StrCat(text.substr(0, kMost), "…");
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

  std::int64_t Int(const char* name, std::int64_t least = 0,
                   std::int64_t most = std::numeric_limits<std::int64_t>::max()) const {
    const Json& value = At(name);
    if (!value.is_number_integer()) Throw(name, value, "an integer");
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() >
            static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      Throw(name, value, "an integer of 64 bits");
    }
    const auto number = value.get<std::int64_t>();
    if (number < least || number > most) {
      Throw(name, value, absl::StrCat("an integer from ", least, " to ", most));
    }
    return number;
  }
  int Int32(const char* name, int least = 0) const {
    return static_cast<int>(Int(name, least, std::numeric_limits<int>::max()));
  }
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
  const Json& object_;
  const std::string event_;
};

FactLine ReadHello(const Members& members, const Json& object) {
  if (const auto protocol = members.Int("protocol"); protocol != 1) {
    throw BadLine(absl::StrCat("the trainer speaks protocol ", protocol, "; this worker speaks 1"));
  }
  FactLine line;
  v1::Started* started = line.event.mutable_started();
  started->set_start_epoch(members.Int32("start_epoch"));
  started->set_epochs(members.Int32("epochs", 1));
  v1::Execution* execution = started->mutable_execution();
  execution->set_threads(members.Int32("threads", 1));
  execution->set_micro_batch(members.Int32("micro_batch"));
  execution->set_packing(members.Int32("packing", 1));
  started->set_better_alone(object.contains("step_seconds") && !object.contains("members"));
  Json environment = object;
  environment.erase("event");
  environment.erase("job");
  started->set_environment_json(environment.dump());
  return line;
}

FactLine ReadEpoch(const Members& members) {
  FactLine line;
  v1::Epoch* epoch = line.event.mutable_epoch();
  epoch->set_epoch(members.Int32("epoch"));
  epoch->set_train_loss(members.Real("train_loss"));
  epoch->set_train_total(members.Int("train_total", 1));
  epoch->set_train_correct(members.Int("train_correct", 0, epoch->train_total()));
  epoch->set_test_loss(members.Real("test_loss"));
  epoch->set_test_total(members.Int("test_total", 1));
  epoch->set_test_correct(members.Int("test_correct", 0, epoch->test_total()));
  epoch->set_learning_rate(members.Real("learning_rate"));
  epoch->set_seconds(members.Real("seconds"));
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

  void ReadCounts(const char* name, std::int64_t most,
                  google::protobuf::RepeatedField<std::int64_t>* counts) {
    ForEachEntry(name, [&](const Json* entry) {
      if (entry == nullptr) return counts->Add(0);
      if (!entry->is_number_integer() || entry->get<std::int64_t>() < 0 ||
          entry->get<std::int64_t>() > most) {
        members_.Throw(name, *entry, absl::StrCat("integers from 0 to ", most));
      }
      counts->Add(entry->get<std::int64_t>());
    });
  }
  void ReadReals(const char* name, google::protobuf::RepeatedField<double>* numbers) {
    ForEachEntry(name, [&](const Json* entry) {
      if (entry == nullptr) return numbers->Add(0);
      if (!entry->is_number() || entry->get<double>() < 0) {
        members_.Throw(name, *entry, "numbers from 0 on");
      }
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

// Every example is right or wrong, both intact and ablated. So the counts of examples that changed
// must match the change of the correct counts.
void CheckPairs(const v1::HeadAblation& ablation) {
  for (int i = 0; i < ablation.correct_size(); ++i) {
    if (ablation.missing(i)) continue;
    if (ablation.intact_correct() - ablation.correct(i) == ablation.lost(i) - ablation.gained(i)) {
      continue;
    }
    throw BadLine(absl::StrCat("event head_ablation: layer ", i / ablation.heads(), " head ",
                               i % ablation.heads(), " has ", ablation.correct(i), " correct of ",
                               ablation.intact_correct(), " intact, but ", ablation.lost(i),
                               " lost and ", ablation.gained(i), " gained"));
  }
}

FactLine ReadHeadAblation(const Members& members) {
  FactLine line;
  v1::HeadAblation* ablation = line.event.mutable_head_ablation();
  ablation->set_version(members.Int32("version", 1));
  ablation->set_parameters_json(ParametersJson(members));
  ablation->set_total(members.Int("total", 1));
  ablation->set_intact_correct(members.Int("intact_correct", 0, ablation->total()));
  ablation->set_intact_nll(members.Real("intact_nll"));
  if (ablation->intact_nll() < 0) {
    members.Throw("intact_nll", members.At("intact_nll"), "a number from 0 on");
  }
  ablation->set_chance(members.Real("chance"));
  if (!(ablation->chance() > 0 && ablation->chance() <= 1)) {
    members.Throw("chance", members.At("chance"), "a number above 0 and at most 1");
  }
  ablation->set_seconds(members.Real("seconds"));
  MatrixReader reader(members, ablation);
  reader.ReadCounts("correct", ablation->total(), ablation->mutable_correct());
  reader.ReadCounts("lost", ablation->intact_correct(), ablation->mutable_lost());
  reader.ReadCounts("gained", ablation->total() - ablation->intact_correct(),
                    ablation->mutable_gained());
  reader.ReadReals("nll", ablation->mutable_nll());
  reader.ReadReals("nll_standard_error", ablation->mutable_nll_standard_error());
  CheckPairs(*ablation);
  const auto& missing = ablation->missing();
  if (std::find(missing.begin(), missing.end(), true) == missing.end()) ablation->clear_missing();
  return line;
}

FactLine ReadAnalysis(const Members& members, const std::string& directory) {
  const std::string file = members.File("file");
  const absl::StatusOr<std::string> text =
      ReadRegularFile(absl::StrCat(directory, "/", file), limits::kAnalysisBytes);
  if (!text.ok()) throw BadLine(absl::StrCat("event analysis: ", text.status().message()));
  if (!IsJson(*text)) throw BadLine(absl::StrCat("event analysis: ", file, " is not JSON"));
  FactLine line;
  v1::AnalysisResult* result = line.event.mutable_analysis();
  result->set_name(members.Text("name"));
  result->set_version(members.Int32("version", 1));
  result->set_parameters_json(ParametersJson(members));
  result->set_result_json(*text);
  if (members.Has("seconds")) result->set_seconds(members.Real("seconds"));
  return line;
}

bool IsSha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

DoneLine ReadDone(const Members& members) {
  DoneLine done;
  done.wall_seconds = members.Real("wall_seconds");
  if (!members.Has("weights")) return done;
  const Json& object = members.At("weights");
  if (!object.is_object()) members.Throw("weights", object, "an object");
  const Members weights(object, "done: weights");
  done.weights_file = weights.File("file");
  done.sha256 = weights.Text("sha256");
  if (!IsSha256(done.sha256))
    weights.Throw("sha256", object.at("sha256"), "64 hexadecimal digits in lower case");
  done.bytes = static_cast<std::uint64_t>(weights.Int("bytes"));
  return done;
}

ErrorLine ReadError(const Members& members) {
  static const auto* const kinds = new std::map<std::string, v1::ErrorKind>{
      {"bad_spec", v1::ERROR_KIND_BAD_SPEC},
      {"out_of_memory", v1::ERROR_KIND_OUT_OF_MEMORY},
      {"non_finite_loss", v1::ERROR_KIND_NON_FINITE_LOSS},
      {"io", v1::ERROR_KIND_IO},
      {"internal", v1::ERROR_KIND_INTERNAL},
  };
  const auto kind = kinds->find(members.Text("kind"));
  // A kind from a later version is still an error, and its message says what happened.
  return {kind == kinds->end() ? v1::ERROR_KIND_INTERNAL : kind->second, members.Text("message")};
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
    return ReadLine(object, directories);
  } catch (const BadLine& bad) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trainer printed a malformed line: ", bad.what()));
  } catch (const Json::exception& bad) {  // the text is not UTF-8
    return absl::InvalidArgumentError(
        absl::StrCat("the trainer printed a malformed line: ", bad.what()));
  }
}

}  // namespace pelab::agent
