#include "tests/support/fake_fleet.h"

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/hashing.h"
#include "core/rpc/credentials.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "pelab/v1/results.grpc.pb.h"

namespace pelab::agent {

using SessionStream = grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;

std::optional<v1::Finished> StoredAttempt::finished() const {
  if (events.empty() || !events.back().has_finished()) return std::nullopt;
  return events.back().finished();
}

std::vector<int> StoredAttempt::epochs() const {
  std::vector<int> epochs;
  for (const v1::Event& event : events) {
    if (event.has_epoch()) epochs.push_back(event.epoch().epoch());
  }
  return epochs;
}

struct FakeFleet::Impl final : public v1::Fleet::Service {
  struct Files final : public v1::Results::Service {
    explicit Files(Impl& impl) : fleet(impl) {}
    grpc::Status GetArtifact(grpc::ServerContext*, const v1::GetArtifactRequest* request,
                             grpc::ServerWriter<v1::ArtifactChunk>* writer) override {
      return fleet.SendArtifact(request->sha256(), writer);
    }
    Impl& fleet;
  };

  // Sends the file in two chunks.
  grpc::Status SendArtifact(const std::string& sha256,
                            grpc::ServerWriter<v1::ArtifactChunk>* writer) {
    std::string data;
    {
      std::lock_guard lock(mutex);
      ++downloads;
      if (artifact_error.has_value()) {
        return {static_cast<grpc::StatusCode>(*artifact_error), "as the test wants it"};
      }
      const auto found = artifacts.find(sha256);
      if (found == artifacts.end()) return {grpc::StatusCode::NOT_FOUND, "no such file"};
      data = instead.value_or(found->second);
    }
    v1::ArtifactChunk chunk;
    chunk.set_data(data.substr(0, data.size() / 2));
    writer->Write(chunk);
    chunk.set_data(data.substr(data.size() / 2));
    writer->Write(chunk);
    return grpc::Status::OK;
  }

  grpc::Status Session(grpc::ServerContext* context, SessionStream* stream) override {
    v1::WorkerMessage message;
    if (!stream->Read(&message) || !message.has_hello()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the first message must be a hello"};
    }
    {
      std::lock_guard lock(mutex);
      hellos.push_back(message.hello());
      live = stream;
      live_context = context;
      stream->Write(Welcome(message.hello()));
    }
    while (stream->Read(&message)) {
      std::lock_guard lock(mutex);
      if (message.has_goodbye()) {
        ++goodbyes;
        last_goodbye = message.goodbye().reason();
        break;
      }
      if (message.has_heartbeat()) {
        ++heartbeats;
        last_held.assign(message.heartbeat().held().begin(), message.heartbeat().held().end());
        last_unfit = message.heartbeat().unfit();
        v1::CoordinatorMessage answer;
        answer.mutable_heartbeat()->set_sequence(message.heartbeat().sequence());
        if (answering) stream->Write(answer);
      }
      if (message.has_log()) StoreLog(message.log());
      if (message.has_events()) StoreEvents(message.events(), stream);
    }
    std::lock_guard lock(mutex);
    if (live == stream) live = nullptr;
    return grpc::Status::OK;
  }

  v1::CoordinatorMessage Welcome(const v1::Hello& hello) {
    v1::CoordinatorMessage answer;
    v1::Welcome* welcome = answer.mutable_welcome();
    welcome->set_protocol(1);
    welcome->set_coordinator_version("fake");
    welcome->set_heartbeat_ms(absl::ToInt64Milliseconds(heartbeat));
    welcome->set_lease_ms(absl::ToInt64Milliseconds(lease));
    for (const v1::HeldAttempt& held : hello.held()) {
      v1::HeldAnswer* held_answer = welcome->add_held();
      held_answer->set_attempt_id(held.attempt_id());
      const auto found = stored.find(held.attempt_id());
      const bool known = found != stored.end() && found->second.current &&
                         found->second.assignment.token() == held.token();
      held_answer->set_accepted(known);
      if (known) held_answer->set_acknowledged(found->second.events.size());
    }
    return answer;
  }

  void StoreLog(const v1::LogChunk& chunk) {
    const auto found = stored.find(chunk.attempt_id());
    if (found != stored.end()) found->second.log += chunk.data();
  }

  void StoreEvents(const v1::EventBatch& batch, SessionStream* stream) {
    v1::CoordinatorMessage answer;
    for (const v1::Event& event : batch.events()) {
      v1::Ack* ack = answer.mutable_acks()->add_acks();
      ack->set_attempt_id(event.attempt_id());
      const auto found = stored.find(event.attempt_id());
      if (found == stored.end() || !found->second.current ||
          found->second.assignment.token() != event.token()) {
        ack->set_superseded(true);
        continue;
      }
      StoredAttempt& attempt = found->second;
      if (event.sequence() == attempt.events.size() + 1) {
        attempt.events.push_back(event);
      } else if (event.sequence() > attempt.events.size()) {
        attempt.has_gap = true;
      }
      ack->set_sequence(attempt.events.size());
    }
    if (acknowledging) stream->Write(answer);
  }

  grpc::Status PutArtifact(grpc::ServerContext*, grpc::ServerReader<v1::PutArtifactRequest>* reader,
                           v1::PutArtifactResponse*) override {
    v1::PutArtifactRequest request;
    if (!reader->Read(&request) || !request.has_header())
      return {grpc::StatusCode::INVALID_ARGUMENT, "no header"};
    const v1::ArtifactHeader header = request.header();
    std::string data;
    while (reader->Read(&request)) data += request.chunk();
    std::lock_guard lock(mutex);
    ++uploads;
    if (artifact_error.has_value()) {
      return {static_cast<grpc::StatusCode>(*artifact_error), "as the test wants it"};
    }
    if (header.in_store()) {
      const std::string path =
          absl::StrCat(store, "/", header.sha256().substr(0, 2), "/", header.sha256());
      const auto data_there = ReadFile(path, 1 << 20);
      if (!data_there.ok() || Sha256Hex(*data_there) != header.sha256()) {
        return {grpc::StatusCode::NOT_FOUND, "not in the store"};
      }
      artifacts[header.sha256()] = "in the store";
      return grpc::Status::OK;
    }
    if (Sha256Hex(data) != header.sha256() || data.size() != header.bytes()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the file is not what its header says"};
    }
    artifacts[header.sha256()] = data;
    return grpc::Status::OK;
  }

  void WriteLive(const v1::CoordinatorMessage& message) {
    if (live != nullptr) live->Write(message);
  }

  mutable std::mutex mutex;
  absl::Duration heartbeat = absl::Milliseconds(200);
  absl::Duration lease = absl::Seconds(4);
  bool acknowledging = true;
  bool answering = true;
  std::optional<int> artifact_error;
  std::optional<std::string> instead;
  int downloads = 0;
  int uploads = 0;
  std::string store;
  Files files{*this};
  std::map<std::int64_t, StoredAttempt> stored;
  std::vector<v1::Hello> hellos;
  std::vector<v1::HeldAttempt> last_held;
  std::string last_unfit;
  std::map<std::string, std::string> artifacts;
  int heartbeats = 0;
  int goodbyes = 0;
  v1::Goodbye::Reason last_goodbye = v1::Goodbye::REASON_UNSPECIFIED;
  SessionStream* live = nullptr;
  grpc::ServerContext* live_context = nullptr;
  std::unique_ptr<grpc::Server> server;
};

FakeFleet::FakeFleet(const std::string& socket_path) : impl_(std::make_unique<Impl>()) {
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
  builder.RegisterService(impl_.get());
  builder.RegisterService(&impl_->files);
  impl_->server = builder.BuildAndStart();
}

FakeFleet::~FakeFleet() {
  Disconnect();
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

void FakeFleet::SetTimes(absl::Duration heartbeat, absl::Duration lease) {
  std::lock_guard lock(impl_->mutex);
  impl_->heartbeat = heartbeat;
  impl_->lease = lease;
}

void FakeFleet::SetAcknowledging(bool on) {
  std::lock_guard lock(impl_->mutex);
  impl_->acknowledging = on;
}

void FakeFleet::SetAnsweringHeartbeats(bool on) {
  std::lock_guard lock(impl_->mutex);
  impl_->answering = on;
}

void FakeFleet::SetArtifactError(std::optional<int> code) {
  std::lock_guard lock(impl_->mutex);
  impl_->artifact_error = code;
}

std::string FakeFleet::KeepArtifact(const std::string& data) {
  std::lock_guard lock(impl_->mutex);
  const std::string sha256 = Sha256Hex(data);
  impl_->artifacts[sha256] = data;
  return sha256;
}

void FakeFleet::SendInstead(const std::string& data) {
  std::lock_guard lock(impl_->mutex);
  impl_->instead = data;
}

int FakeFleet::Downloads() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->downloads;
}

int FakeFleet::Uploads() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->uploads;
}

void FakeFleet::SetStore(const std::string& directory) {
  std::lock_guard lock(impl_->mutex);
  impl_->store = directory;
}

void FakeFleet::Assign(const v1::Assignment& assignment) {
  v1::CoordinatorMessage message;
  *message.mutable_assignment() = assignment;
  std::lock_guard lock(impl_->mutex);
  impl_->stored[assignment.attempt_id()].assignment = assignment;
  impl_->WriteLive(message);
}

void FakeFleet::AssignPack(const std::vector<v1::Assignment>& assignments) {
  v1::CoordinatorMessage message;
  std::lock_guard lock(impl_->mutex);
  for (const v1::Assignment& assignment : assignments) {
    *message.mutable_pack()->add_assignments() = assignment;
    impl_->stored[assignment.attempt_id()].assignment = assignment;
  }
  impl_->WriteLive(message);
}

void FakeFleet::Send(const v1::CoordinatorMessage& message) {
  std::lock_guard lock(impl_->mutex);
  impl_->WriteLive(message);
}

void FakeFleet::Cancel(std::int64_t attempt_id) {
  v1::CoordinatorMessage message;
  std::lock_guard lock(impl_->mutex);
  message.mutable_stop()->set_attempt_id(attempt_id);
  message.mutable_stop()->set_token(impl_->stored.at(attempt_id).assignment.token());
  message.mutable_stop()->set_reason(v1::StopAttempt::CANCELLED);
  impl_->WriteLive(message);
}

void FakeFleet::Supersede(std::int64_t attempt_id) {
  std::lock_guard lock(impl_->mutex);
  impl_->stored.at(attempt_id).current = false;
}

void FakeFleet::Disconnect() {
  std::lock_guard lock(impl_->mutex);
  if (impl_->live != nullptr) impl_->live_context->TryCancel();
  impl_->live = nullptr;
}

std::map<std::int64_t, StoredAttempt> FakeFleet::Stored() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->stored;
}

void FakeFleet::Restore(std::map<std::int64_t, StoredAttempt> stored) {
  std::lock_guard lock(impl_->mutex);
  impl_->stored = std::move(stored);
}

std::vector<v1::Hello> FakeFleet::Hellos() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->hellos;
}

int FakeFleet::Heartbeats() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->heartbeats;
}

std::vector<v1::HeldAttempt> FakeFleet::LastHeartbeatHeld() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->last_held;
}

std::string FakeFleet::LastHeartbeatUnfit() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->last_unfit;
}

int FakeFleet::Goodbyes() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->goodbyes;
}

v1::Goodbye::Reason FakeFleet::LastGoodbye() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->last_goodbye;
}

bool FakeFleet::connected() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->live != nullptr;
}

std::map<std::string, std::string> FakeFleet::Artifacts() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->artifacts;
}

bool FakeFleet::Await(const std::function<bool()>& condition) const {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

std::optional<v1::Finished> FakeFleet::AwaitFinished(std::int64_t attempt_id) const {
  std::optional<v1::Finished> finished;
  Await([&] {
    const auto stored = Stored();
    const auto found = stored.find(attempt_id);
    if (found != stored.end()) finished = found->second.finished();
    return finished.has_value();
  });
  return finished;
}

v1::Assignment MakeAssignment(std::int64_t attempt_id, const std::string& mode, int epochs,
                              int slot) {
  v1::Assignment assignment;
  assignment.set_attempt_id(attempt_id);
  assignment.set_token(0xABCDEF0000000000u + static_cast<std::uint64_t>(attempt_id));
  assignment.set_job_id(1000 + attempt_id);
  assignment.set_key(Sha256Hex(absl::StrCat("job ", attempt_id)));
  assignment.set_slot(slot);
  assignment.set_label(absl::StrCat(mode, " ", attempt_id));
  assignment.set_spec_json(absl::StrCat("{\"mode\":\"", mode, "\",\"epochs\":", epochs, "}"));
  if (mode == "ok") {
    v1::Analysis* analysis = assignment.add_analyses();
    analysis->set_name("head_ablation");
    analysis->set_version(2);
    analysis->set_parameters_json("{\"method\":\"zero\"}");
  }
  return assignment;
}

}  // namespace pelab::agent
