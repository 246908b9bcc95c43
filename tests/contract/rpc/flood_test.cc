// Peers that do not read, send too much, or send nonsense. The memory used for them is bounded,
// they get an error message, and all other clients are served.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstdint>

#include "core/base/unique_fd.h"
#include "tests/contract/rpc/coordinator_fixture.h"
#include "tests/support/process_size.h"

namespace pelab {
namespace {

using testing::HasSubstr;

class FloodTest : public CoordinatorTest {
 protected:
  std::string WorkerState(const std::string& id) {
    v1::ListWorkersResponse response;
    EXPECT_TRUE(results_->ListWorkers(Context().get(), v1::ListWorkersRequest(), &response).ok());
    for (const v1::WorkerRow& row : response.workers()) {
      if (row.worker_id() == id) return row.state();
    }
    return "";
  }
};

// The worker sends requests without pause and reads no answer after its welcome.
TEST_F(FloodTest, AWorkerThatDoesNotReadIsGivenUp) {
  Submit(Document("s"), "a");
  const std::int64_t before = ResidentBytes();
  // The fixed window keeps gRPC's own buffer for the worker at 64 KiB. A growing window would hold
  // a million answers.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt("pelab.channel", -1);  // a connection of its own
  const auto fleet = v1::Fleet::NewStub(grpc::CreateCustomChannel(
      coordinator_->addresses().front(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  const auto stream = fleet->Session(&context);
  v1::WorkerMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_protocol(1);
  hello->set_worker_id("deaf");
  hello->set_host("h");
  hello->set_version("1");
  stream->Write(message);
  v1::CoordinatorMessage welcome;
  ASSERT_TRUE(stream->Read(&welcome));
  std::atomic<std::uint64_t> sent = 0;
  std::thread flood([&] {
    // The coordinator answers heartbeats, and also each event of an unknown attempt.
    v1::WorkerMessage beat;
    beat.mutable_heartbeat()->set_sequence(1);
    v1::WorkerMessage events;
    for (int i = 0; i < 200; ++i) {
      v1::Event* event = events.mutable_events()->add_events();
      event->set_attempt_id(1'000'000 + i);
      event->set_sequence(1);
      event->mutable_started()->set_epochs(3);
    }
    while (stream->Write(sent++ % 10 == 0 ? events : beat)) continue;
  });
  // Another worker works meanwhile.
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  worker.Send(script.Whole(3));
  worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  // About 100,000 answers.
  const absl::Time deadline = absl::Now() + absl::Minutes(5);
  while (WorkerState("deaf") != "offline" && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(WorkerState("deaf"), "offline") << "after " << sent << " messages";
  EXPECT_EQ(WorkerState("w1"), "online");
  EXPECT_LT(ResidentBytes() - before, 512 << 20);
  if (HasFailure()) context.TryCancel();  // otherwise it would send for ever
  // Once it reads, it learns the reason.
  v1::CoordinatorMessage answer;
  while (stream->Read(&answer)) continue;
  flood.join();
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << end.error_message();
  EXPECT_THAT(end.error_message(), HasSubstr("does not read"));
}

TEST_F(FloodTest, AWatcherThatDoesNotReadCostsNobodyAnything) {
  constexpr int kEpochs = 2'000;
  Submit(Document("s", "[0]", kEpochs), "a");
  v1::WatchSweepRequest request;
  request.mutable_sweep()->set_sweep("s");
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::SweepUpdate>>> deaf;
  for (int i = 0; i < 50; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    deaf.push_back(sweeps_->WatchSweep(contexts.back().get(), request));
  }
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(0, kEpochs)});
  for (int i = 0; i < kEpochs; ++i) {
    v1::Event event = script.Epoch(i);
    event.mutable_epoch()->set_test_correct(i % 97);
    worker.Send({event});
  }
  EXPECT_FALSE(worker.AwaitAck(script.assignment().attempt_id(), script.sequence()).superseded());
  for (const auto& context : contexts) context->TryCancel();
}

TEST_F(FloodTest, ManySubmissionsAtOnceAreStoredOrRefusedInWords) {
  constexpr int kThreads = 8;
  constexpr int kEach = 8;
  const std::int64_t before = ResidentBytes();
  std::atomic<int> stored = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        v1::SubmitRequest request;
        request.set_document(Document(absl::StrCat("s", t, "-", i)) + "#" +
                             std::string(100'000, 'x') + "\n");
        request.set_client_token(absl::StrCat(t, "-", i));
        v1::SubmitResponse response;
        const grpc::Status status = sweeps_->Submit(Context().get(), request, &response);
        if (status.ok()) {
          ++stored;
        } else {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
          EXPECT_THAT(status.error_message(), HasSubstr(" "));
          ++refused;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(stored + refused, kThreads * kEach);
  EXPECT_GT(stored, 0);
  EXPECT_LT(ResidentBytes() - before, 512 << 20);
}

TEST_F(FloodTest, WhatIsTooLongIsRefused) {
  v1::SubmitRequest request;
  request.set_document(std::string(17 << 20, 'x'));
  request.set_client_token("a");
  v1::SubmitResponse response;
  const grpc::Status status = sweeps_->Submit(Context().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("larger than max"));
  const auto refused = [&](const std::function<void(v1::SubmitRequest&)>& spoil) {
    v1::SubmitRequest spoilt;
    spoilt.set_document(Document("s"));
    spoilt.set_client_token("a");
    spoil(spoilt);
    const grpc::Status end = sweeps_->Submit(Context().get(), spoilt, &response);
    EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << end.error_message();
    return end.error_message();
  };
  EXPECT_EQ(refused([](auto& r) { r.set_file_name(std::string(5000, 'x')); }),
            "file_name has 5000 bytes; at most 4096 are allowed");
  EXPECT_EQ(refused([](auto& r) { r.set_file_name("a\nb.yaml"); }),
            "file_name has the character \\n, which is not printable");
  EXPECT_EQ(refused([](auto& r) { r.set_file_name("a\u202eb.yaml"); }),
            "file_name has the character \\u202e, which is not printable");
  EXPECT_THAT(refused([](auto& r) {
                for (int i = 0; i < 1000; ++i) {
                  v1::Override& override = *r.add_overrides();
                  override.set_field("train.lr");
                  override.set_value(std::string(2000, '1'));
                }
              }),
              HasSubstr("bytes; at most 1048576 are allowed"));
  EXPECT_EQ(Submit(Document("s"), "b").counts().new_jobs(), 4u);
}

// The texts of all extensions of a sweep are in one row.
TEST_F(FloodTest, TheSeedsOfAllExtensionsAreBounded) {
  Submit(Document("s", "[0]", 1), "a");
  int accepted = 0;
  grpc::Status status;
  // Seeds of nine digits, so that few of them are long.
  for (std::int64_t seed = 100'000'000; status.ok() && accepted < 10;) {
    v1::ExtendRequest request;
    request.mutable_sweep()->set_sweep("s");
    request.set_dry_run(false);
    std::string seeds;
    for (int i = 0; i < 2000; ++i, seed += 2) absl::StrAppend(&seeds, i > 0 ? "," : "", seed);
    request.set_seeds(seeds);
    v1::ExtendResponse response;
    status = sweeps_->Extend(Context().get(), request, &response);
    accepted += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(accepted, 3);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("allowed: 65536"));
}

// Bytes that are not HTTP/2, on connections that stay open.
TEST_F(FloodTest, NonsenseIsNoHarm) {
  const std::string path = directory_ + "/s";
  std::vector<UniqueFd> connections;
  for (int i = 0; i < 100; ++i) {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_un address{.sun_family = AF_UNIX};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) continue;
    std::string nonsense =
        i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (int k = 0; k < 10'000; ++k) nonsense += static_cast<char>(k * 7919 + i);
    send(fd.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    connections.push_back(std::move(fd));
  }
  EXPECT_GT(connections.size(), 50u);
  EXPECT_EQ(Submit(Document("s"), "b").counts().new_jobs(), 4u);
}

}  // namespace
}  // namespace pelab
