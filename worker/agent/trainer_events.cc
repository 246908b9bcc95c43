#include "worker/agent/trainer_events.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace pelab::agent {
namespace {

using Json = nlohmann::json;

// Wrong lines end in one catch: the checks below read better without a status each.
class BadLine : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string Excerpt(absl::string_view text) {
  constexpr std::size_t kMost = 120;
  return text.size() <= kMost ? std::string(text) : absl::StrCat(text.substr(0, kMost), "…");
}

// The members of one event's object, each checked when it is read.
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
  // JSON has no infinities; a loss that is not finite is an `error` event.
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
  // A path that stays below the trainer's directory.
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

// Canonical: nlohmann's objects are sorted by name and its numbers are the shortest that read back
// the same. What the coordinator asked for has parameters of words and integers only, where that is
// RFC 8785 too.
std::string ParametersJson(const Members& members) {
  const Json& parameters = members.At("parameters");
  if (!parameters.is_object()) members.Throw("parameters", parameters, "an object");
  return parameters.dump();
}

FactLine ReadHeadAblation(const Members& members) {
  FactLine line;
  v1::HeadAblation* ablation = line.event.mutable_head_ablation();
  ablation->set_version(members.Int32("version", 1));
  ablation->set_parameters_json(ParametersJson(members));
  ablation->set_total(members.Int("total", 1));
  ablation->set_intact_correct(members.Int("intact_correct", 0, ablation->total()));
  ablation->set_seconds(members.Has("seconds") ? members.Real("seconds") : 0);
  const Json& rows = members.At("correct");
  const std::size_t heads =
      rows.is_array() && !rows.empty() && rows[0].is_array() ? rows[0].size() : 0;
  if (heads == 0) members.Throw("correct", rows, "layers x heads array of arrays of integers");
  for (const Json& row : rows) {
    if (!row.is_array() || row.size() != heads)
      members.Throw("correct", row, absl::StrCat(heads, " counts a layer"));
    for (const Json& count : row) {
      if (!count.is_number_integer() || count.get<std::int64_t>() < 0 ||
          count.get<std::int64_t>() > ablation->total()) {
        members.Throw("correct", count, absl::StrCat("integers from 0 to ", ablation->total()));
      }
      ablation->add_correct(count.get<std::int64_t>());
    }
  }
  ablation->set_layers(static_cast<int>(rows.size()));
  ablation->set_heads(static_cast<int>(heads));
  return line;
}

FactLine ReadAnalysis(const Members& members, const std::string& directory) {
  const std::string file = members.File("file");
  const absl::StatusOr<std::string> text =
      ReadFile(absl::StrCat(directory, "/", file), kMaxAnalysisBytes);
  if (!text.ok()) throw BadLine(absl::StrCat("event analysis: ", text.status().message()));
  if (!Json::accept(*text)) throw BadLine(absl::StrCat("event analysis: ", file, " is not JSON"));
  FactLine line;
  v1::AnalysisResult* result = line.event.mutable_analysis();
  result->set_name(members.Text("name"));
  result->set_version(members.Int32("version", 1));
  result->set_parameters_json(ParametersJson(members));
  result->set_result_json(*text);
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
  // A kind of a later version is still an error, and its message says what happened.
  return {kind == kinds->end() ? v1::ERROR_KIND_INTERNAL : kind->second, members.Text("message")};
}

TrainerLine ReadLine(const Json& object, absl::string_view job, const std::string& directory) {
  const Members any(object, "line");
  const std::string event = any.Text("event");
  if (const std::string named = any.Text("job"); named != job) {
    throw BadLine(absl::StrCat("event ", event, " is of job \"", named,
                               "\"; this trainer was given \"", job, "\""));
  }
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

}  // namespace

absl::StatusOr<TrainerLine> ParseTrainerLine(absl::string_view line, absl::string_view job,
                                             const std::string& directory) {
  const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trainer printed a line that is not a JSON object: ", Excerpt(line)));
  }
  try {
    return ReadLine(object, job, directory);
  } catch (const BadLine& bad) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trainer printed a malformed line: ", bad.what()));
  } catch (const Json::exception& bad) {  // text that is not UTF-8
    return absl::InvalidArgumentError(
        absl::StrCat("the trainer printed a malformed line: ", bad.what()));
  }
}

}  // namespace pelab::agent
