// A coordinator in this process on a Unix socket, and a worker daemon played by the test.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/sha256.h"
#include "core/rpc/address.h"
#include "core/rpc/fleet_protocol.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "pelab/v1/results.grpc.pb.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "server/coordinator.h"

namespace pelab {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlower = 10;  // how many times as long something may take
#else
inline constexpr int kSlower = 1;
#endif
// For events that must happen.
inline constexpr absl::Duration kPatience = absl::Seconds(kSlower == 1 ? 60 : 240);
// A lease that a test lets run out. Within it, a coordinator on a busy machine must have stored an
// assignment and sent it.
inline constexpr absl::Duration kShortLease = absl::Milliseconds(kSlower == 1 ? 600 : 2'400);

// A small sweep with one analysis; 2 layers of 2 heads, and the examples that Script reports.
inline std::string Document(const std::string& name, const std::string& seeds = "[0, 1]",
                            int epochs = 3) {
  return absl::StrCat("name: ", name,
                      "\nprotocol: clean\npe: [nope, rope]\n"
                      "task: {name: distance, train_examples: 99, test_examples: 97}\nseed: ",
                      seeds, "\nmodel: {d_model: 8, d_ff: 16, heads: 2, layers: 2}\n",
                      "train: {epochs: ", epochs, "}\nanalyses: [head_ablation]\n");
}

// The worker's end of a session. A thread of its own reads the coordinator's messages and keeps
// them.
class FakeWorker {
 public:
  FakeWorker(const std::shared_ptr<grpc::Channel>& channel, std::string id, int slots,
             std::vector<v1::HeldAttempt> held = {}, const std::string& capabilities = "",
             int pack = 0, const std::string& device = "cpu")
      : id_(std::move(id)), stub_(v1::Fleet::NewStub(channel)), stream_(stub_->Session(&context_)) {
    v1::WorkerMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol(rpc::kFleetProtocols.oldest);
    hello->set_protocol_max(rpc::kFleetProtocols.newest);
    hello->add_features(std::string(rpc::kFilesFeature));
    hello->set_worker_id(id_);
    hello->set_host("test-host");
    hello->set_version("1");
    hello->set_capabilities_json(capabilities);
    for (int i = 0; i < slots; ++i) {
      v1::Slot* slot = hello->add_slots();
      slot->set_slot(i);
      slot->set_device(device);
      slot->set_device_kind(device == "cpu" ? "cpu" : "gpu");
      slot->set_pack(pack);
    }
    for (const v1::HeldAttempt& attempt : held) *hello->add_held() = attempt;
    stream_->Write(message);
    reader_ = std::thread([this] { Read(); });
  }
  ~FakeWorker() { Vanish(); }

  // Breaks the stream, like a daemon that is killed.
  void Vanish() {
    context_.TryCancel();
    Join();
  }
  grpc::Status Leave() {
    v1::WorkerMessage message;
    message.mutable_goodbye();
    stream_->Write(message);
    Join();
    return status_;
  }
  // The status with which the coordinator ended the stream.
  grpc::Status WaitForEnd() {
    Join();
    return status_;
  }

  // Removes and returns the next message that satisfies `wanted`. Fails the test after kPatience.
  v1::CoordinatorMessage Await(const std::function<bool(const v1::CoordinatorMessage&)>& wanted) {
    MutexLock lock(&mutex_);
    const auto find = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::find_if(messages_.begin(), messages_.end(), wanted);
    };
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return find() != messages_.end();
    };
    const bool came = mutex_.AwaitFor(there, kPatience);
    EXPECT_TRUE(came) << "worker " << id_ << " waited in vain";
    if (!came) return {};
    v1::CoordinatorMessage found = *find();
    messages_.erase(find());
    return found;
  }
  v1::Welcome AwaitWelcome() {
    return Await([](const auto& m) { return m.has_welcome(); }).welcome();
  }
  v1::Assignment AwaitAssignment() {
    return Await([](const auto& m) { return m.has_assignment(); }).assignment();
  }
  // As AwaitAssignment; heartbeats renew the leases of `held` meanwhile.
  v1::Assignment AwaitAssignmentWith(const std::vector<v1::HeldAttempt>& held) {
    const auto is_one = [](const v1::CoordinatorMessage& m) { return m.has_assignment(); };
    const absl::Time deadline = absl::Now() + kPatience;
    while (Count(is_one) == 0 && absl::Now() < deadline) {
      Beat(held);
      absl::SleepFor(absl::Milliseconds(20));
    }
    return AwaitAssignment();
  }
  v1::AssignmentPack AwaitPack() {
    return Await([](const auto& m) { return m.has_pack(); }).pack();
  }
  v1::StopAttempt AwaitStop() {
    return Await([](const auto& m) { return m.has_stop(); }).stop();
  }
  // Waits until the attempt is acknowledged up to `sequence`, or superseded.
  v1::Ack AwaitAck(std::int64_t attempt_id, std::uint64_t sequence) {
    MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto found = acks_.find(attempt_id);
      return found != acks_.end() &&
             (found->second.sequence() >= sequence || found->second.superseded());
    };
    EXPECT_TRUE(mutex_.AwaitFor(there, kPatience))
        << "worker " << id_ << " waited in vain for an acknowledgement";
    return acks_[attempt_id];
  }
  int Count(const std::function<bool(const v1::CoordinatorMessage&)>& wanted) {
    MutexLock lock(&mutex_);
    return static_cast<int>(std::count_if(messages_.begin(), messages_.end(), wanted));
  }

  void Send(const std::vector<v1::Event>& events) {
    v1::WorkerMessage message;
    for (const v1::Event& event : events) *message.mutable_events()->add_events() = event;
    stream_->Write(message);
  }
  void Beat(const std::vector<v1::HeldAttempt>& held, const std::vector<v1::DeviceLoad>& loads = {},
            const std::string& unfit = "") {
    v1::Heartbeat beat;
    beat.set_unfit(unfit);
    for (const v1::HeldAttempt& attempt : held) *beat.add_held() = attempt;
    for (const v1::DeviceLoad& load : loads) *beat.add_loads() = load;
    SendBeat(std::move(beat));
  }
  void SendBeat(v1::Heartbeat beat) {
    v1::WorkerMessage message;
    *message.mutable_heartbeat() = std::move(beat);
    message.mutable_heartbeat()->set_sequence(++beats_);
    stream_->Write(message);
  }
  void Log(const v1::Assignment& assignment, std::uint64_t offset, const std::string& data) {
    v1::WorkerMessage message;
    message.mutable_log()->set_attempt_id(assignment.attempt_id());
    message.mutable_log()->set_token(assignment.token());
    message.mutable_log()->set_offset(offset);
    message.mutable_log()->set_data(data);
    stream_->Write(message);
  }

 private:
  void Read() {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
      MutexLock lock(&mutex_);
      for (const v1::Ack& ack : message.acks().acks()) acks_[ack.attempt_id()] = ack;
      if (!message.has_acks()) messages_.push_back(message);
    }
    status_ = stream_->Finish();
  }
  void Join() {
    if (reader_.joinable()) reader_.join();
  }

  const std::string id_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
  Mutex mutex_;
  std::deque<v1::CoordinatorMessage> messages_ ABSL_GUARDED_BY(mutex_);
  std::map<std::int64_t, v1::Ack> acks_ ABSL_GUARDED_BY(mutex_);  // the last of each attempt
  std::uint64_t beats_ = 0;
  grpc::Status status_;
  std::thread reader_;
};

inline v1::HeldAttempt Holding(const v1::Assignment& assignment) {
  v1::HeldAttempt held;
  held.set_attempt_id(assignment.attempt_id());
  held.set_token(assignment.token());
  held.set_slot(assignment.slot());
  return held;
}

// The events of one attempt, numbered like in a spool.
class Script {
 public:
  explicit Script(v1::Assignment assignment) : assignment_(std::move(assignment)) {}

  v1::Event Started(int start_epoch, int epochs, int threads = 1, int packing = 1) {
    v1::Event event = Next();
    event.mutable_started()->mutable_execution()->set_threads(threads);
    event.mutable_started()->mutable_execution()->set_packing(packing);
    event.mutable_started()->set_start_epoch(start_epoch);
    event.mutable_started()->set_epochs(epochs);
    event.mutable_started()->set_environment_json("{}");
    return event;
  }
  // The losses have no shorter exact decimal form. The counts tell attempts apart.
  v1::Event Epoch(int epoch, int correct = 40) {
    v1::Event event = Next();
    v1::Epoch* e = event.mutable_epoch();
    e->set_epoch(epoch);
    e->set_train_loss(1.0 / (3 + epoch));
    e->set_train_correct(correct);
    e->set_train_total(99);
    e->set_test_loss(1.0 / (7 + epoch));
    e->set_test_correct(correct + epoch);
    e->set_test_total(97);
    e->set_learning_rate(1e-3);
    e->set_seconds(0.1);
    return event;
  }
  v1::Event Artifact(const std::string& sha256, std::uint64_t bytes) {
    v1::Event event = Next();
    event.mutable_artifact()->set_name("weights.safetensors");
    event.mutable_artifact()->set_sha256(sha256);
    event.mutable_artifact()->set_bytes(bytes);
    return event;
  }
  v1::Event Checkpoint(int epoch, const std::string& sha256, std::uint64_t bytes) {
    v1::Event event = Next();
    event.mutable_checkpoint()->set_epoch(epoch);
    event.mutable_checkpoint()->set_sha256(sha256);
    event.mutable_checkpoint()->set_bytes(bytes);
    return event;
  }
  v1::Event Analysis(int index, const std::string& result_json) {
    v1::Event event = Next();
    const v1::Analysis& asked = assignment_.analyses(index);
    event.mutable_analysis()->set_name(asked.name());
    event.mutable_analysis()->set_version(asked.version());
    event.mutable_analysis()->set_parameters_json(asked.parameters_json());
    event.mutable_analysis()->set_result_json(result_json);
    return event;
  }
  v1::Event Ablation(int index = 0) {
    v1::Event event = Next();
    v1::HeadAblation* matrix = event.mutable_head_ablation();
    matrix->set_version(assignment_.analyses(index).version());
    matrix->set_parameters_json(assignment_.analyses(index).parameters_json());
    matrix->set_layers(2);
    matrix->set_heads(2);
    matrix->set_total(97);
    matrix->set_intact_correct(42);
    matrix->set_intact_nll(1.25);
    matrix->set_chance(1.0 / 70);
    for (const int correct : {10, 20, 30, 42}) {
      matrix->add_correct(correct);
      matrix->add_gained(1);
      matrix->add_lost(42 - correct + 1);
      matrix->add_nll(2 - correct / 100.0);
      matrix->add_nll_standard_error(0.01);
    }
    matrix->set_seconds(0.5);
    return event;
  }
  v1::Event Finished(v1::AttemptOutcome outcome, v1::ErrorKind kind = v1::ERROR_KIND_UNSPECIFIED,
                     const std::string& error = "") {
    v1::Event event = Next();
    event.mutable_finished()->set_outcome(outcome);
    event.mutable_finished()->set_error_kind(kind);
    event.mutable_finished()->set_error(error);
    event.mutable_finished()->set_wall_seconds(1.5);
    return event;
  }
  // All events of a successful attempt.
  std::vector<v1::Event> Whole(int epochs) {
    std::vector<v1::Event> events = {Started(0, epochs)};
    for (int i = 0; i < epochs; ++i) events.push_back(Epoch(i));
    events.push_back(Ablation());
    events.push_back(Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED));
    return events;
  }
  std::uint64_t sequence() const { return sequence_; }
  const v1::Assignment& assignment() const { return assignment_; }

 private:
  v1::Event Next() {
    v1::Event event;
    event.set_attempt_id(assignment_.attempt_id());
    event.set_token(assignment_.token());
    event.set_sequence(++sequence_);
    return event;
  }

  v1::Assignment assignment_;
  std::uint64_t sequence_ = 0;
};

class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    std::string pattern = testing::TempDir() + "pelabXXXXXX";
    directory_ = mkdtemp(pattern.data());
    options_.database = directory_ + "/pelab.db";
    options_.listen = {*rpc::ParseAddress("unix:" + directory_ + "/s")};
    options_.heartbeat = absl::Milliseconds(200);
    options_.lease = absl::Seconds(30);
  }
  ~CoordinatorTest() override {
    coordinator_.reset();
    std::filesystem::remove_all(directory_);
  }
  void SetUp() override { Start(); }

  void Start() {
    auto coordinator = Coordinator::Start(options_);
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    coordinator_ = *std::move(coordinator);
    Connect(coordinator_->addresses().front());
  }
  void Connect(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    // do not share the previous channel's connection
    arguments.SetInt("pelab.channel", ++channels_);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    sweeps_ = v1::Sweeps::NewStub(channel_);
    results_ = v1::Results::NewStub(channel_);
    fleet_ = v1::Fleet::NewStub(channel_);
  }
  void Restart() {
    coordinator_.reset();
    Start();
  }

  std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    context->set_wait_for_ready(true);
    return context;
  }
  v1::SubmitResponse Submit(const std::string& document, const std::string& token,
                            bool fresh = false) {
    v1::SubmitRequest request;
    request.set_document(document);
    request.set_file_name("test.yaml");
    request.set_client_token(token);
    request.set_fresh(fresh);
    v1::SubmitResponse response;
    const grpc::Status status = sweeps_->Submit(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // The header of an upload of `data`, which belongs to that attempt.
  static v1::PutArtifactRequest HeaderOf(const v1::Assignment& assignment,
                                         const std::string& data) {
    v1::PutArtifactRequest request;
    request.mutable_header()->set_sha256(Sha256Hex(data));
    request.mutable_header()->set_bytes(data.size());
    request.mutable_header()->set_attempt_id(assignment.attempt_id());
    request.mutable_header()->set_token(assignment.token());
    return request;
  }
  // The stored file with this hash.
  std::string FileOf(const std::string& sha256) {
    v1::GetArtifactRequest request;
    request.set_sha256(sha256);
    const auto context = Context();
    const auto reader = results_->GetArtifact(context.get(), request);
    std::string data;
    v1::ArtifactChunk chunk;
    while (reader->Read(&chunk)) data += chunk.data();
    EXPECT_TRUE(reader->Finish().ok());
    return data;
  }
  // Stores `data` as a file of that attempt and returns its SHA-256.
  std::string Put(const v1::Assignment& assignment, const std::string& data) {
    v1::PutArtifactResponse response;
    const auto context = Context();
    const auto writer = fleet_->PutArtifact(context.get(), &response);
    v1::PutArtifactRequest request = HeaderOf(assignment, data);
    writer->Write(request);
    request.set_chunk(data);
    writer->Write(request);
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    return Sha256Hex(data);
  }
  v1::Sweep GetSweep(const std::string& sweep) {
    v1::GetSweepRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    v1::Sweep response;
    const grpc::Status status = sweeps_->GetSweep(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::Sweep AwaitSweep(const std::string& sweep,
                       const std::function<bool(const v1::Sweep&)>& wanted) {
    const absl::Time deadline = absl::Now() + kPatience;
    v1::Sweep now = GetSweep(sweep);
    while (!wanted(now) && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(20));
      now = GetSweep(sweep);
    }
    EXPECT_TRUE(wanted(now)) << now.ShortDebugString();
    return now;
  }
  v1::ListCurvesResponse Curves(const std::string& sweep) {
    v1::ListCurvesRequest request;
    request.mutable_filter()->set_sweep(sweep);
    v1::ListCurvesResponse response;
    EXPECT_TRUE(results_->ListCurves(Context().get(), request, &response).ok());
    return response;
  }
  v1::ListJobsResponse Jobs(const std::string& sweep) {
    v1::ListJobsRequest request;
    request.mutable_filter()->set_sweep(sweep);
    v1::ListJobsResponse response;
    EXPECT_TRUE(results_->ListJobs(Context().get(), request, &response).ok());
    return response;
  }

  std::string directory_;
  CoordinatorOptions options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sweeps::Stub> sweeps_;
  std::unique_ptr<v1::Results::Stub> results_;
  std::unique_ptr<v1::Fleet::Stub> fleet_;
  int channels_ = 0;
};

}  // namespace pelab
