// Faults: workers that vanish, coordinators that restart, cancels, and requests that cannot be
// served.
#include <gmock/gmock.h>

#include <cstdint>
#include <set>

#include "core/base/hashing.h"
#include "core/rpc/lock_file.h"
#include "core/rpc/status.h"
#include "pelab/v1/common.pb.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using testing::HasSubstr;

constexpr char kOneJob[] = "[0]";  // seeds; two encodings: two jobs

TEST_F(CoordinatorTest, ARestartKillsNoTraining) {
  Submit(Document("s", kOneJob), "a");
  auto worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  Script script(worker->AwaitAssignment());
  const std::int64_t id = script.assignment().attempt_id();
  worker->Send({script.Started(0, 3), script.Epoch(0)});
  worker->AwaitAck(id, 2);
  const v1::Event unsent = script.Epoch(1);
  Restart();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 1,
                                        std::vector<v1::HeldAttempt>{Holding(script.assignment())});
  const v1::Welcome welcome = worker->AwaitWelcome();
  ASSERT_EQ(welcome.held_size(), 1);
  EXPECT_TRUE(welcome.held(0).accepted());
  EXPECT_EQ(welcome.held(0).acknowledged(), 2u);
  worker->Send(
      {unsent, script.Epoch(2), script.Ablation(), script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  EXPECT_FALSE(worker->AwaitAck(id, script.sequence()).superseded());
  Script second(worker->AwaitAssignment());  // the other job, once the slot is free
  worker->Send(second.Whole(3));
  const v1::Sweep sweep =
      AwaitSweep("s", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  EXPECT_EQ(sweep.jobs().succeeded(), 2u);
  EXPECT_EQ(Curves("s").rows_size(), 6);
}

TEST_F(CoordinatorTest, AnAssignmentThatDidNotArriveIsSentAgain) {
  Submit(Document("s", kOneJob), "a");
  auto worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  const v1::Assignment first = worker->AwaitAssignment();
  worker->Vanish();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  EXPECT_EQ(worker->AwaitAssignment().attempt_id(), first.attempt_id());
  worker.reset();
  Restart();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  const v1::Assignment again = worker->AwaitAssignment();
  EXPECT_EQ(again.attempt_id(), first.attempt_id());
  EXPECT_EQ(again.token(), first.token());
  EXPECT_EQ(again.spec_json(), first.spec_json());
  EXPECT_EQ(again.analyses_size(), 1);
}

TEST_F(CoordinatorTest, AWorkerThatComesBackWithoutItsAttemptHasLostIt) {
  Submit(Document("s", kOneJob), "a");
  auto worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  Script script(worker->AwaitAssignment());
  worker->Send({script.Started(0, 3), script.Epoch(0)});
  worker->AwaitAck(script.assignment().attempt_id(), 2);
  worker->Vanish();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 2);
  std::set<std::int64_t> attempts;
  for (int i = 0; i < 2; ++i) {
    const v1::Assignment next = worker->AwaitAssignment();
    if (next.job_id() == script.assignment().job_id()) {
      EXPECT_EQ(next.max_start_epoch(), 1);
      EXPECT_NE(next.token(), script.assignment().token());
    }
    attempts.insert(next.attempt_id());
  }
  EXPECT_EQ(attempts.count(script.assignment().attempt_id()), 0u);
  // The lost attempt's late events are answered as superseded, not with an error.
  worker->Send({script.Epoch(1)});
  EXPECT_TRUE(worker->AwaitAck(script.assignment().attempt_id(), 3).superseded());
}

TEST_F(CoordinatorTest, ALeaseThatIsNotRenewedCostsOneLeaseAndGoesElsewhere) {
  coordinator_.reset();
  options_.lease = kShortLease;
  options_.heartbeat = absl::Milliseconds(100);
  Start();
  Submit(Document("s", kOneJob, 2), "a");
  FakeWorker silent(channel_, "silent", 1);
  const v1::Assignment lost = silent.AwaitAssignment();
  FakeWorker other(channel_, "other", 1);
  Script first(other.AwaitAssignment());
  other.Send(first.Whole(2));
  Script second(other.AwaitAssignment());  // the silent worker's job
  EXPECT_EQ(second.assignment().job_id(), lost.job_id());
  other.Send(second.Whole(2));
  AwaitSweep("s", [](const auto& s) { return s.jobs().succeeded() == 2; });
  EXPECT_EQ(silent.AwaitStop().attempt_id(), lost.attempt_id());
}

TEST_F(CoordinatorTest, ANewerSessionReplacesTheOlder) {
  FakeWorker older(channel_, "w1", 1);
  older.AwaitWelcome();
  FakeWorker newer(channel_, "w1", 1);
  newer.AwaitWelcome();
  EXPECT_EQ(older.WaitForEnd().error_code(), grpc::StatusCode::ABORTED);
  Submit(Document("s", kOneJob), "a");
  newer.AwaitAssignment();
}

TEST_F(CoordinatorTest, CancellingStopsTrainersAndFreesTheirSlots) {
  Submit(Document("first", kOneJob), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(0, 3)});
  worker.AwaitAck(script.assignment().attempt_id(), 1);
  v1::CancelRequest request;
  request.mutable_sweep()->set_sweep("first");
  v1::CancelResponse response;
  ASSERT_TRUE(sweeps_->Cancel(Context().get(), request, &response).ok());
  EXPECT_EQ(response.claims_withdrawn(), 2u);
  EXPECT_EQ(response.jobs_cancelled(), 2u);
  const v1::StopAttempt stop = worker.AwaitStop();
  EXPECT_EQ(stop.reason(), v1::StopAttempt::CANCELLED);
  Submit(Document("second", "[9]"), "b");
  worker.Send({script.Finished(v1::ATTEMPT_OUTCOME_CANCELLED)});
  worker.AwaitAck(script.assignment().attempt_id(), 2);
  Script next(worker.AwaitAssignment());
  EXPECT_EQ(next.assignment().seed(), 9);
  EXPECT_EQ(GetSweep("first").state(), v1::SWEEP_STATE_CANCELLED);
  EXPECT_EQ(GetSweep("first").jobs().cancelled(), 2u);
}

TEST_F(CoordinatorTest, WatchingShowsASnapshotAndEndsWithTheSweep) {
  Submit(Document("s", kOneJob), "a");
  v1::WatchSweepRequest request;
  request.mutable_sweep()->set_sweep("s");
  grpc::ClientContext context;
  const auto stream = sweeps_->WatchSweep(&context, request);
  v1::SweepUpdate update;
  ASSERT_TRUE(stream->Read(&update));
  EXPECT_EQ(update.sweep().jobs().queued(), 2u);
  EXPECT_EQ(update.sweep().waiting_reason(), "no worker is connected");
  FakeWorker worker(channel_, "w1", 2);
  Script first(worker.AwaitAssignment());
  Script second(worker.AwaitAssignment());
  worker.Send({first.Started(0, 3), first.Epoch(0)});
  bool seen_running = false;
  while (!seen_running && stream->Read(&update)) {
    seen_running = update.running_size() == 1 && update.running(0).epochs_done() == 1;
  }
  ASSERT_TRUE(seen_running);
  EXPECT_EQ(update.running(0).worker(), "w1");
  EXPECT_EQ(update.running(0).test_accuracy(), 40 / 97.0);
  worker.Send({first.Epoch(1), first.Epoch(2), first.Ablation(),
               first.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  worker.Send(second.Whole(3));
  while (stream->Read(&update)) {
  }
  EXPECT_EQ(update.sweep().state(), v1::SWEEP_STATE_FINISHED);
  EXPECT_EQ(update.sweep().jobs().succeeded(), 2u);
  EXPECT_TRUE(stream->Finish().ok());

  request.mutable_sweep()->set_sweep("nobody");
  grpc::ClientContext other;
  const auto none = sweeps_->WatchSweep(&other, request);
  EXPECT_FALSE(none->Read(&update));
  EXPECT_EQ(none->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(CoordinatorTest, InvalidDocumentsSayWhereAndStoreNothing) {
  v1::SubmitRequest request;
  request.set_document("name: x\nprotocol: clean\npe: [alibbi]\ntask: distance\nseed: 0\n");
  request.set_client_token("t");
  v1::SubmitResponse response;
  const absl::Status status = rpc::FromGrpc(sweeps_->Submit(Context().get(), request, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto violations = rpc::GetViolations(status);
  ASSERT_TRUE(violations.has_value());
  ASSERT_EQ(violations->violations_size(), 1);
  EXPECT_EQ(violations->violations(0).line(), 3);
  EXPECT_THAT(violations->violations(0).message(), HasSubstr("alibbi"));
  v1::ListSweepsResponse sweeps;
  ASSERT_TRUE(sweeps_->ListSweeps(Context().get(), {}, &sweeps).ok());
  EXPECT_EQ(sweeps.sweeps_size(), 0);

  request.set_document(Document("x"));
  request.set_client_token("");
  EXPECT_EQ(sweeps_->Submit(Context().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_client_token("t");
  request.set_priority(5000);
  EXPECT_THAT(sweeps_->Submit(Context().get(), request, &response).error_message(),
              HasSubstr("priority 5000"));
}

TEST_F(CoordinatorTest, PreviewCountsAndStoresNothing) {
  Submit(Document("s"), "a");
  v1::PreviewRequest request;
  request.set_document(Document("s", "[0, 1, 2]"));
  request.set_max_jobs(2);
  v1::PreviewResponse response;
  ASSERT_TRUE(sweeps_->Preview(Context().get(), request, &response).ok());
  EXPECT_EQ(response.counts().total(), 6u);
  EXPECT_EQ(response.counts().in_flight(), 4u);
  EXPECT_EQ(response.counts().new_jobs(), 2u);
  EXPECT_EQ(response.jobs_size(), 2);
  EXPECT_EQ(GetSweep("s").cells(), 4u);
}

TEST_F(CoordinatorTest, MalformedSessionsAreEndedWithAReason) {
  grpc::ClientContext context;
  const auto stream = fleet_->Session(&context);
  v1::WorkerMessage message;
  message.mutable_heartbeat();
  stream->Write(message);
  v1::CoordinatorMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("must be Hello"));

  FakeWorker worker(channel_, "w1", 1);
  worker.AwaitWelcome();
  v1::Event event;
  event.set_attempt_id(1);
  event.set_sequence(1);
  worker.Send({event});
  EXPECT_THAT(worker.WaitForEnd().error_message(), HasSubstr("has no body"));
}

TEST_F(CoordinatorTest, HellosWithLongOrOddTextsAreRefused) {
  const auto end = [&](const std::function<void(v1::Hello&)>& spoil) {
    grpc::ClientContext context;
    const auto stream = fleet_->Session(&context);
    v1::WorkerMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol(1);
    hello.set_worker_id("odd");
    hello.set_host("h");
    hello.set_version("1");
    spoil(hello);
    stream->Write(message);
    v1::CoordinatorMessage answer;
    EXPECT_FALSE(stream->Read(&answer));
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  EXPECT_EQ(end([](auto& hello) { hello.set_host(std::string(300, 'h')); }),
            "host of worker odd has 300 bytes; at most 256 are allowed");
  EXPECT_EQ(end([](auto& hello) { hello.set_host("h\nerror: all is lost"); }),
            "host of worker odd has the character \\n, which is not printable");
  EXPECT_EQ(end([](auto& hello) { hello.set_name("\x1b[31mred"); }),
            "name of worker odd has the character \\x1b, which is not printable");
  EXPECT_EQ(end([](auto& hello) { hello.set_version(std::string(65, '1')); }),
            "version of worker odd has 65 bytes; at most 64 are allowed");
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(results_->ListWorkers(Context().get(), {}, &workers).ok());
  EXPECT_EQ(workers.workers_size(), 0);

  // What a machine calls its devices is cut instead.
  grpc::ClientContext context;
  const auto stream = fleet_->Session(&context);
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol(1);
  hello.set_worker_id("w1");
  hello.set_host("h");
  v1::Slot& slot = *hello.add_slots();
  slot.set_device("cuda:0" + std::string(1 << 20, '0'));
  slot.set_device_kind("gpu");
  slot.set_device_name("\x1b[2J" + std::string(1 << 20, 'x'));
  stream->Write(message);
  v1::CoordinatorMessage welcome;
  ASSERT_TRUE(stream->Read(&welcome));
  ASSERT_TRUE(results_->ListWorkers(Context().get(), {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_LT(workers.workers(0).devices_json().size(), 1000u);
  EXPECT_THAT(workers.workers(0).devices_json(), HasSubstr("x1b[2Jxxx"));
  context.TryCancel();
}

TEST_F(CoordinatorTest, AGapEndsTheSessionSoThatTheWorkerResends) {
  Submit(Document("s", kOneJob), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  script.Started(0, 3);  // never sent
  worker.Send({script.Epoch(0)});
  const grpc::Status end = worker.WaitForEnd();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(end.error_message(), HasSubstr("resend"));
}

TEST_F(CoordinatorTest, FilesArriveWholeOrNotAtAll) {
  Submit(Document("s", kOneJob), "a");
  FakeWorker worker(channel_, "w1", 1);
  const v1::Assignment assignment = worker.AwaitAssignment();
  const std::string data(700'000, 'w');
  const auto put = [&](const std::string& sha, std::uint64_t bytes, v1::PutArtifactResponse* out) {
    const auto context = Context();
    const auto writer = fleet_->PutArtifact(context.get(), out);
    v1::PutArtifactRequest request = HeaderOf(assignment, data);
    request.mutable_header()->set_sha256(sha);
    request.mutable_header()->set_bytes(bytes);
    writer->Write(request);
    for (std::size_t at = 0; at < data.size(); at += 300'000) {
      request.set_chunk(data.substr(at, 300'000));
      writer->Write(request);
    }
    writer->WritesDone();
    return writer->Finish();
  };
  v1::PutArtifactResponse response;
  const std::string sha = Sha256Hex(data);
  EXPECT_EQ(put(std::string(64, 'a'), data.size(), &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(put(sha, data.size() + 1, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(put("../../etc/passwd", 1, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(put(sha, std::uint64_t{1} << 60, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  const std::string path = directory_ + "/pelab.db.artifacts/" + sha.substr(0, 2) + "/" + sha;
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(put(sha, data.size(), &response).ok());
  EXPECT_FALSE(response.already_there());
  EXPECT_EQ(std::filesystem::file_size(path), data.size());
  ASSERT_TRUE(put(sha, data.size(), &response).ok());
  EXPECT_TRUE(response.already_there());

  v1::GetArtifactRequest request;
  request.set_sha256(sha);
  const auto context = Context();
  const auto reader = results_->GetArtifact(context.get(), request);
  std::string got;
  v1::ArtifactChunk chunk;
  std::vector<std::uint64_t> totals;
  while (reader->Read(&chunk)) {
    got += chunk.data();
    totals.push_back(chunk.total_bytes());
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(got, data);
  EXPECT_THAT(totals, testing::ElementsAre(data.size(), 0, 0));
  const auto code = [&](const std::string& hash) {
    v1::GetArtifactRequest other;
    other.set_sha256(hash);
    const auto own = Context();
    const auto answer = results_->GetArtifact(own.get(), other);
    EXPECT_FALSE(answer->Read(&chunk));
    return answer->Finish().error_code();
  };
  EXPECT_EQ(code(std::string(64, 'b')), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(code("../../etc/passwd"), grpc::StatusCode::INVALID_ARGUMENT);
  // An empty file is sent as a chunk without data.
  response.Clear();
  {
    const auto own = Context();
    const auto writer = fleet_->PutArtifact(own.get(), &response);
    writer->Write(HeaderOf(assignment, ""));
    writer->WritesDone();
    ASSERT_TRUE(writer->Finish().ok());
  }
  request.set_sha256(Sha256Hex(""));
  const auto own = Context();
  const auto nothing = results_->GetArtifact(own.get(), request);
  ASSERT_TRUE(nothing->Read(&chunk));
  EXPECT_EQ(chunk.data(), "");
  EXPECT_FALSE(nothing->Read(&chunk));
  EXPECT_TRUE(nothing->Finish().ok());
}

TEST_F(CoordinatorTest, LogsAreReadAndFollowed) {
  Submit(Document("s", kOneJob), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(0, 3)});
  worker.Log(script.assignment(), 0, "first ");
  v1::ReadLogRequest request;
  request.set_job(absl::StrCat(script.assignment().job_id()));
  request.set_follow(true);
  const auto context = Context();
  const auto reader = results_->ReadLog(context.get(), request);
  v1::LogPart part;
  ASSERT_TRUE(reader->Read(&part));
  EXPECT_EQ(part.data(), "first ");
  worker.Log(script.assignment(), 6, "second");
  ASSERT_TRUE(reader->Read(&part));
  EXPECT_EQ(part.data(), "second");
  EXPECT_EQ(part.offset(), 6u);
  worker.Send({script.Finished(v1::ATTEMPT_OUTCOME_FAILED, v1::ERROR_KIND_BAD_SPEC, "no")});
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(CoordinatorTest, ShuttingDownTellsWorkersToConnectAgain) {
  FakeWorker worker(channel_, "w1", 1);
  worker.AwaitWelcome();
  const absl::Time before = absl::Now();
  coordinator_->Stop();
  EXPECT_LT(absl::Now() - before, absl::Seconds(2));
  EXPECT_EQ(worker.WaitForEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/s"));
}

TEST_F(CoordinatorTest, ADatabaseHasOneCoordinatorWhoseAddressItsLockNames) {
  const auto second = Coordinator::Start(options_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("unix:" + directory_ + "/s"));
  EXPECT_EQ(**rpc::ReadLiveAddress(options_.database), "unix:" + directory_ + "/s");
  CoordinatorOptions same_socket = options_;
  same_socket.database = directory_ + "/other.db";
  EXPECT_THAT(std::string(Coordinator::Start(same_socket).status().message()),
              HasSubstr("another program listens there"));
  // A symbolic link is another name of the same file.
  CoordinatorOptions linked = options_;
  linked.database = directory_ + "/link.db";
  linked.listen = {*rpc::ParseAddress("unix:" + directory_ + "/t")};
  std::filesystem::create_symlink("pelab.db", linked.database);
  const absl::Status refused = Coordinator::Start(linked).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("unix:" + directory_ + "/s"));
  EXPECT_FALSE(std::filesystem::exists(linked.database + ".lock"));
  // So is a hard link, and the file stays locked if its lock is removed.
  linked.database = directory_ + "/hard.db";
  std::filesystem::create_hard_link(options_.database, linked.database);
  EXPECT_EQ(Coordinator::Start(linked).status().code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove(options_.database + ".lock");
  linked.database = options_.database;
  EXPECT_EQ(Coordinator::Start(linked).status().code(), absl::StatusCode::kFailedPrecondition);
  // the first coordinator still works
  EXPECT_EQ(Submit(Document("s"), "a").counts().new_jobs(), 4u);
}

TEST_F(CoordinatorTest, ARealPortIsChosenAndServed) {
  coordinator_.reset();
  options_.listen.push_back(*rpc::ParseAddress("127.0.0.1:0", rpc::PortZero::kAllowed));
  Start();
  ASSERT_EQ(coordinator_->addresses().size(), 2u);
  const std::string address = coordinator_->addresses()[1];
  EXPECT_NE(address, "127.0.0.1:0");
  Connect(address);
  EXPECT_EQ(Submit(Document("tcp"), "a").counts().new_jobs(), 4u);
  CoordinatorOptions taken = options_;
  taken.database = directory_ + "/other.db";
  taken.listen = {*rpc::ParseAddress(address)};
  EXPECT_EQ(Coordinator::Start(taken).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(CoordinatorTest, ALargeSweepIsExpandedInSlicesAndDispatchedMeanwhile) {
  FakeWorker worker(channel_, "w1", 1);
  worker.AwaitWelcome();
  const v1::SubmitResponse response = Submit(Document("large", "0..1999"), "a");
  EXPECT_EQ(response.cells(), 4'000u);
  EXPECT_FALSE(response.expanded());
  worker.AwaitAssignment();
  // Other requests are answered meanwhile, and after a restart the work continues.
  EXPECT_EQ(Submit(Document("small"), "b").counts().total(), 4u);
  const v1::Sweep before = GetSweep("large");
  if (before.state() == v1::SWEEP_STATE_EXPANDING) Restart();
  const v1::Sweep sweep =
      AwaitSweep("large", [](const auto& s) { return s.state() != v1::SWEEP_STATE_EXPANDING; });
  EXPECT_EQ(sweep.counts().total(), 4'000u);
  EXPECT_EQ(sweep.counts().new_jobs() + sweep.counts().in_flight(), 4'000u);
}

}  // namespace
}  // namespace pelab
