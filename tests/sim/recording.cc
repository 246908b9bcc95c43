#include "tests/sim/recording.h"

#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace pelab::sim {
namespace {

struct Recording {
  std::string document;
  v1::Hello hello;
  std::map<std::string, RecordedJob, std::less<>> jobs;  // by key
};

template <typename Message>
Message FromRecord(const nlohmann::json& json) {
  Message message;
  if (!google::protobuf::util::JsonStringToMessage(json.dump(), &message).ok()) std::abort();
  return message;
}

void AddEvent(const v1::Event& event, RecordedJob& job) {
  if (event.has_started()) job.started = event.started();
  if (event.has_epoch()) job.epochs.push_back(event.epoch());
  if (event.has_head_ablation()) job.matrix = event.head_ablation();
  if (event.has_analysis()) job.analysis = event.analysis();
  if (event.has_artifact()) job.weights = event.artifact();
}

void AddLine(const nlohmann::json& line, std::map<std::int64_t, std::string>& keys,
             Recording& recording) {
  const std::string from = line.at("from");
  if (from == "person") {
    recording.document = line.at("document");
  } else if (from == "coordinator") {
    const auto message = FromRecord<v1::CoordinatorMessage>(line.at("message"));
    if (message.has_assignment()) {
      keys[message.assignment().attempt_id()] = message.assignment().key();
    }
  } else if (!line.at("message").contains("header") && !line.at("message").contains("chunk")) {
    const auto message = FromRecord<v1::WorkerMessage>(line.at("message"));
    if (message.has_hello()) recording.hello = message.hello();
    for (const v1::Event& event : message.events().events()) {
      AddEvent(event, recording.jobs[keys.at(event.attempt_id())]);
    }
  }
}

const Recording& TheRecording() {
  static const Recording& recording = *[] {
    const char* const path = PELAB_SOURCE_DIR "/tests/contract/sessions/protocol_1.jsonl";
    auto* const read = new Recording;
    std::map<std::int64_t, std::string> keys;  // of the recorded attempts
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      AddLine(nlohmann::json::parse(line), keys, *read);
    }
    if (read->document.empty() || read->jobs.empty()) {
      std::fprintf(stderr, "sim: %s cannot be read\n", path);
      std::abort();
    }
    return read;
  }();
  return recording;
}

}  // namespace

const std::string& RecordedDocument() { return TheRecording().document; }

const v1::Hello& RecordedHello() { return TheRecording().hello; }

const RecordedJob* RecordedJobOf(std::string_view key) {
  const auto found = TheRecording().jobs.find(key);
  return found == TheRecording().jobs.end() ? nullptr : &found->second;
}

std::optional<std::uint64_t> RecordedBytes(std::string_view sha256) {
  for (const auto& [key, job] : TheRecording().jobs) {
    if (job.weights.sha256() == sha256) return job.weights.bytes();
  }
  return std::nullopt;
}

std::string UnrecordedField(const v1::Hello& hello) {
  using Fields = std::vector<const google::protobuf::FieldDescriptor*>;
  Fields said;
  Fields recorded;
  hello.GetReflection()->ListFields(hello, &said);
  RecordedHello().GetReflection()->ListFields(RecordedHello(), &recorded);
  const std::set<const google::protobuf::FieldDescriptor*> known(recorded.begin(), recorded.end());
  for (const auto* field : said) {
    if (field->name() != "held" && known.count(field) == 0) return std::string(field->name());
  }
  return "";
}

}  // namespace pelab::sim
