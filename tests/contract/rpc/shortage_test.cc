// Peers that hold what the coordinator has only so much of: descriptors, threads, memory, places.
// Others are served meanwhile, or at the latest when these peers have been given up.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "absl/strings/match.h"
#include "core/base/unique_fd.h"
#include "pelab/v1/maintenance.grpc.pb.h"
#include "server/limits.h"
#include "tests/contract/rpc/coordinator_fixture.h"
#include "tests/support/http2_peer.h"
#include "tests/support/process_size.h"

namespace pelab {
namespace {

using testing::HasSubstr;
using testing_support::Http2Peer;

constexpr absl::Duration kShort = absl::Milliseconds(50);
constexpr char kListSweeps[] = "/pelab.v1.Sweeps/ListSweeps";
constexpr char kSubmit[] = "/pelab.v1.Sweeps/Submit";

// The soft limit of descriptors, for a scope.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t soft) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit limit{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

class ShortageTest : public CoordinatorTest {
 protected:
  // `file`: that of the socket, in the test's folder.
  UniqueFd Dial(const std::string& file = "s") const {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un name{.sun_family = AF_UNIX};
    const std::string path = directory_ + "/" + file;
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    if (fd && connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) fd.Reset();
    return fd;
  }
  UniqueFd DialTcp() const {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const rpc::Address address = *rpc::ParseAddress(coordinator_->addresses().front());
    name.sin_port = htons(static_cast<std::uint16_t>(address.port));
    if (fd && connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0 &&
        errno != EINPROGRESS) {
      fd.Reset();
    }
    return fd;
  }
  // Both ends are in this process, so the clients use up the descriptors of the coordinator.
  void SpendAllDescriptors(const std::function<UniqueFd()>& dial) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "UBSan needs a descriptor for its checks";
#endif
    Submit(Document("s"), "a");
    std::vector<UniqueFd> silent;
    const DescriptorLimit limit(512);
    for (UniqueFd fd = dial(); fd; fd = dial()) silent.push_back(std::move(fd));
    EXPECT_GT(silent.size(), 100u);
    absl::SleepFor(absl::Milliseconds(300));  // the coordinator tries to accept them, and fails
    EXPECT_EQ(GetSweep("s").cells(), 4u) << "who is connected is served";
    silent.clear();
    Connect(coordinator_->addresses().front());
    EXPECT_EQ(Submit(Document("t"), "b").counts().new_jobs(), 0u) << "a new connection is accepted";
  }
  // Passes over the settings that gRPC sends first.
  static bool IsClosed(const UniqueFd& fd) {
    char bytes[4096];
    ssize_t got = 0;
    do {
      got = recv(fd.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    } while (got > 0);
    return got == 0 || errno != EAGAIN;
  }
  static int Closed(const std::vector<UniqueFd>& all) {
    return static_cast<int>(std::count_if(all.begin(), all.end(), IsClosed));
  }
  // A coordinator under a sanitizer, on a busy machine, pauses as long as a silent peer would.
  void RestartWithPatience(absl::Duration patience) {
    coordinator_.reset();
    options_.peer_silence = kSlower * patience;
    Start();
  }
};

TEST_F(ShortageTest, ConnectionsThatTookAllDescriptorsAreForgottenOnceTheyAreGone) {
  SpendAllDescriptors([this] { return Dial(); });
}

TEST_F(ShortageTest, ConnectionsThatTookAllDescriptorsOverTcpAreForgottenToo) {
  coordinator_.reset();
  options_.listen = {*rpc::ParseAddress("127.0.0.1:0", rpc::PortZero::kAllowed)};
  Start();
  SpendAllDescriptors([this] { return DialTcp(); });
}

TEST_F(ShortageTest, ConnectionsLeaveDescriptorsForFiles) {
  Submit(Document("s"), "a");
  const DescriptorLimit limit(1024);
  // Of a limit of 1024, connections get the numbers below 960.
  std::vector<UniqueFd> files;
  while (files.size() < 900) files.emplace_back(fcntl(0, F_DUPFD_CLOEXEC, 3));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 60; ++i) {
    if (UniqueFd fd = Dial()) silent.push_back(std::move(fd));
  }
  int closed = 0;
  const absl::Time deadline = absl::Now() + kPatience;
  while (closed == 0 && absl::Now() < deadline) {
    closed = Closed(silent);
  }
  EXPECT_GT(closed, 0) << "those above the limit are refused, not kept waiting";
  EXPECT_EQ(GetSweep("s").cells(), 4u);
}

// Nobody needs a token there.
TEST_F(ShortageTest, TheAddressOfHealthChecksTakesFewDescriptors) {
  coordinator_.reset();
  options_.health = *rpc::ParseAddress("unix:" + directory_ + "/health");
  Start();
  Submit(Document("s"), "a");
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(Dial("health"));
  const int most = static_cast<int>(limits::kHealthOfAddress);
  absl::Time deadline = absl::Now() + kPatience;
  while (Closed(silent) < 200 - most && absl::Now() < deadline) absl::SleepFor(kShort);
  EXPECT_EQ(Closed(silent), 200 - most);
  Connect(coordinator_->addresses().front());
  EXPECT_EQ(Submit(Document("t"), "b").counts().new_jobs(), 0u) << "others connect meanwhile";
  // Those that were taken end by themselves, and then there is room for a check.
  deadline = absl::Now() + kPatience;
  while (Closed(silent) < 200 && absl::Now() < deadline) absl::SleepFor(kShort);
  EXPECT_EQ(Closed(silent), 200);
  const auto probe =
      grpc::CreateChannel("unix:" + directory_ + "/health", grpc::InsecureChannelCredentials());
  EXPECT_TRUE(probe->WaitForConnected(absl::ToChronoTime(absl::Now() + kPatience)));
}

TEST_F(ShortageTest, CallsThatAreResetAtOnceMakeNoThreads) {
  constexpr int kResets = 5'000;
  Http2Peer peer(directory_ + "/s");
  ASSERT_TRUE(peer.connected());
  int most = 0;
  for (int i = 0; i < kResets; ++i) {
    const std::uint32_t stream = peer.Open(kListSweeps);
    peer.SendEmptyMessage(stream);
    peer.Reset(stream);
    if (i % 100 == 0) {
      while (peer.Receive(0)) continue;
      most = std::max(most, Threads());
    }
  }
  EXPECT_LT(most, limits::kRpcThreads + 100);
  // Calls are refused as long as those that were reset have all threads.
  v1::ListSweepsResponse response;
  const absl::Time end = absl::Now() + kSlower * absl::Seconds(10);
  grpc::Status status;
  do {
    status = sweeps_->ListSweeps(Context().get(), {}, &response);
  } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(ShortageTest, AnswersThatNobodyTakesAreGivenUp) {
  for (int i = 0; i < 20; ++i) Submit(Document(absl::StrCat("s", i)), absl::StrCat("t", i));
  RestartWithPatience(absl::Milliseconds(500));
  const int before = Threads();
  Http2Peer peer(directory_ + "/s", /*window=*/1);
  ASSERT_TRUE(peer.connected());
  for (int i = 0; i < 70; ++i) peer.SendEmptyMessage(peer.Open(kListSweeps));
  EXPECT_EQ(GetSweep("s1").cells(), 4u) << "others are served meanwhile";
  const absl::Time deadline = absl::Now() + kPatience;
  int most = 0;
  do {
    peer.Receive(20);
    most = std::max(most, Threads());
  } while ((most < before + 50 || Threads() > before + 20) && absl::Now() < deadline);
  EXPECT_GE(most, before + 50) << "the answers did wait";
  EXPECT_LE(Threads(), before + 20);
}

TEST_F(ShortageTest, OfManyAnswersThatNobodyTakesTheOldestAreGivenUp) {
  constexpr int kCalls = 60;  // fewer than may wait for a turn
  constexpr int kKept = 10;
  for (int i = 0; i < 20; ++i) Submit(Document(absl::StrCat("s", i)), absl::StrCat("t", i));
  v1::ListSweepsResponse answer;
  ASSERT_TRUE(sweeps_->ListSweeps(Context().get(), {}, &answer).ok());
  coordinator_.reset();
  options_.untaken_bytes = (kKept + 1) * answer.ByteSizeLong();
  Start();
  Http2Peer peer(directory_ + "/s", /*window=*/1);
  ASSERT_TRUE(peer.connected());
  for (int i = 0; i < kCalls; ++i) peer.SendEmptyMessage(peer.Open(kListSweeps));
  const absl::Time deadline = absl::Now() + kPatience;
  while (peer.resets() < kCalls - kKept - 1 && absl::Now() < deadline) peer.Receive(20);
  EXPECT_GE(peer.resets(), kCalls - kKept - 1);
  EXPECT_LT(peer.resets(), kCalls) << "the youngest may still be taken";
  EXPECT_TRUE(sweeps_->ListSweeps(Context().get(), {}, &answer).ok());
}

TEST_F(ShortageTest, LongDocumentsTakeTurnsAndOfManyTheRestIsRefused) {
  std::string rates;
  for (int i = 1; i <= 4'000; ++i) absl::StrAppend(&rates, i > 1 ? "," : "", i, "e-6");
  struct Call {
    grpc::ClientContext context;
    v1::PreviewRequest request;
    v1::PreviewResponse response;
  };
  // More than may wait, with as many processors as there may be.
  const int calls =
      static_cast<int>(limits::kRequestsWaiting + std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<Call>> all;
  Mutex mutex;
  int refused = 0;
  int ended = 0;
  for (int i = 0; i < calls; ++i) {
    Call& call = *all.emplace_back(std::make_unique<Call>());
    call.request.set_document(
        absl::StrCat("name: large\nprotocol: clean\npe: nope\nseed: 0..19\n"
                     "task: {name: distance, train_examples: 99, test_examples: 97}\n"
                     "model: {d_model: 32, d_ff: 16, heads: 2, layers: 2}\n"
                     "train: {epochs: 1}\nanalyses: []\naxes: {train.lr: [",
                     rates, "]}\n"));
    sweeps_->async()->Preview(
        &call.context, &call.request, &call.response, [&](const grpc::Status& status) {
          MutexLock lock(&mutex);
          ++ended;
          if (!absl::StrContains(status.error_message(), "too many calls: 64 requests")) return;
          EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
          ++refused;
        });
  }
  {
    MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitFor([&] { return refused > 0; }, kPatience));
  }
  for (const auto& call : all) call->context.TryCancel();
  {
    MutexLock lock(&mutex);
    mutex.Await([&] { return ended == calls; });
  }
  // Those that waited leave the line.
  v1::PreviewRequest small;
  small.set_document(Document("s"));
  v1::PreviewResponse response;
  grpc::Status status;
  const absl::Time deadline = absl::Now() + kPatience;
  do {
    status = sweeps_->Preview(Context().get(), small, &response);
  } while (!status.ok() && absl::Now() < deadline);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.counts().total(), 4u);
}

TEST_F(ShortageTest, MessagesThatAreNeverWholeHoldBoundedMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory that was freed";
#endif
  const std::int64_t before = ResidentBytes();
  std::vector<std::unique_ptr<Http2Peer>> peers;
  std::uint64_t sent = 0;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<Http2Peer>(directory_ + "/s"));
    ASSERT_TRUE(peers.back()->connected());
    for (int k = 0; k < 32; ++k) {
      sent += peers.back()->SendPart(peers.back()->Open(kSubmit), 16 << 20, 15 << 20);
    }
    if (i == 0) {
      EXPECT_GT(sent, 1u << 20) << "what the server takes is measured";
    }
  }
  EXPECT_LT(ResidentBytes() - before, std::int64_t{limits::kRpcBytes} + (256 << 20))
      << "after " << (sent >> 20) << " MiB";
  EXPECT_EQ(Submit(Document("s"), "a").counts().new_jobs(), 4u);
}

TEST_F(ShortageTest, AnUploadThatSendsNothingIsEnded) {
  RestartWithPatience(absl::Milliseconds(300));
  Submit(Document("s"), "a");
  FakeWorker worker(channel_, "w1", 1);
  const v1::Assignment assignment = worker.AwaitAssignment();
  const auto context = Context();
  v1::PutArtifactResponse response;
  const auto upload = fleet_->PutArtifact(context.get(), &response);
  upload->Write(HeaderOf(assignment, "x"));
  // It is not ended by this side.
  EXPECT_EQ(upload->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ShortageTest, BackupsThatNobodyReadsMakeRoomForOthers) {
  Submit(Document("s"), "a");
  const std::string weights(12 << 20, 'w');
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  worker.Send(
      {script.Started(0, 3), script.Artifact(Put(script.assignment(), weights), weights.size())});
  worker.AwaitAck(script.assignment().attempt_id(), 2);
  worker.Vanish();
  RestartWithPatience(absl::Milliseconds(300));
  const auto stub = v1::Maintenance::NewStub(channel_);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::BackupPart>>> unread;
  for (int i = 0; i < limits::kBackups; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    unread.push_back(stub->Backup(contexts.back().get(), v1::BackupRequest()));
    v1::BackupPart part;
    ASSERT_TRUE(unread.back()->Read(&part));
  }
  grpc::Status status;
  const absl::Time deadline = absl::Now() + kPatience;
  do {
    const auto context = Context();
    const auto whole = stub->Backup(context.get(), v1::BackupRequest());
    for (v1::BackupPart part; whole->Read(&part);) continue;
    status = whole->Finish();
  } while (!status.ok() && absl::Now() < deadline);
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const auto& context : contexts) context->TryCancel();
}

}  // namespace
}  // namespace pelab
