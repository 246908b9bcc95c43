// Any bytes as the messages of a worker, for a real session, scheduler and store: nothing crashes,
// and the database keeps all its invariants.
//
// An input is a byte (its lowest bit: whether the session has not begun; the others: seconds that
// pass at the end) and then messages of pelab.v1.WorkerMessage, each after its length. The worker
// "w" has attempt 1 (token 1, of job 1) in slot 0.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <memory>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/db/check/check.h"
#include "core/experiment/analysis.h"
#include "core/experiment/sweep.h"
#include "server/service/expander.h"
#include "server/service/worker_session.h"
#include "server/store/database.h"
#include "tests/fuzz/empty_database.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/quiet.h"
#include "tests/support/one_thread_world.h"

namespace pelab::event_fuzz {
namespace {

using fuzz::Require;

constexpr char kDocument[] =
    "name: s\n"
    "pe: rope\n"
    "task: {name: distance, train_examples: 99, test_examples: 97}\n"
    "seed: [0, 1]\n"
    "model: {d_model: 8, d_ff: 16, heads: 2, layers: 2}\n"
    "train: {epochs: 2}\n"
    "analyses: [head_ablation]\n";
constexpr char kAnalyses[] =
    R"([{"name":"head_ablation","version":2,"parameters_json":"{\"data\":\"test\",\"hygiene\":\")"
    R"(clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}"}])";

class Session final : public service::WorkerSession {
 public:
  explicit Session(service::FleetContext& context) : WorkerSession(context) {}
  using WorkerSession::Ended;
  using WorkerSession::Handle;
  void Close(const absl::Status& status) override {
    closed_ = true;
    if (!status.ok()) fuzz::RequireSentence(status.message());
  }
  bool closed() const { return closed_; }

 protected:
  void Send(v1::CoordinatorMessage message) override {
    v1::CoordinatorMessage back;
    Require(back.ParseFromString(message.SerializeAsString()), "a worker can read every answer",
            message.ShortDebugString());
  }
  void ReadOn() override {}

 private:
  bool closed_ = false;
};

// A coordinator with one sweep of two jobs.
class Coordinator {
 public:
  Coordinator() {
    world_.on_change = [this](bool works) { scheduler_.StorageWorks(works); };
    scheduler_.Start();
    static const auto& sweep = *new experiment::Sweep(*experiment::ParseSweep(kDocument).sweep);
    const auto stored = Do<store::SweepStored>(store::SubmitSweep{.name = "s",
                                                                  .protocol = sweep.protocol(),
                                                                  .document = kDocument,
                                                                  .overrides_json = "[]",
                                                                  .client_token = "s",
                                                                  .analyses_json = kAnalyses,
                                                                  .resources_json = "{}",
                                                                  .cells = sweep.cells()});
    scheduler_.Expanded(Do<store::SliceStored>(
        service::BuildSlice(stored.sweep_id, sweep, 0, 64, SystemClock::Instance())));
    world_.Settle();
  }

  std::shared_ptr<Session> Connect() { return std::make_shared<Session>(context_); }
  static void Greet(Session& session) {
    v1::WorkerMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol(1);
    hello.set_worker_id("w");
    hello.set_host("h");
    hello.set_version("1");
    v1::Slot& slot = *hello.add_slots();
    slot.set_device("cpu");
    slot.set_device_kind("cpu");
    session.Handle(std::make_shared<v1::WorkerMessage>(message));
  }
  void Pass(absl::Duration time) { world_.Advance(time); }
  void RequireSound() {
    for (const db::Check& check : db::CheckConnection(world_.store->database().connection())) {
      Require(check.problems.empty(), check.name, absl::StrJoin(check.problems, "; "));
    }
  }

 private:
  template <typename Result>
  Result Do(store::Write write) {
    const std::vector<store::Write> writes = {std::move(write)};
    return std::get<Result>(*world_.store->Apply(writes)->front());
  }

  sched::World world_{fuzz::EmptyDatabase()};
  std::uint64_t token_ = 0;
  sched::Scheduler scheduler_{world_, world_, world_, {.token = [this] { return ++token_; }}};
  service::FleetContext context_{
      world_, world_, scheduler_, world_, absl::Seconds(5), absl::Seconds(20), [] { return 0.5; }};
};

}  // namespace

PELAB_FUZZ_TARGET(event) {
  if (size == 0) return 0;
  Coordinator coordinator;
  const auto session = coordinator.Connect();
  if ((data[0] & 1) == 0) Coordinator::Greet(*session);
  coordinator.Pass(absl::ZeroDuration());
  google::protobuf::io::ArrayInputStream stream(data + 1, static_cast<int>(size - 1));
  v1::WorkerMessage message;
  bool at_end = false;
  while (!session->closed() &&
         google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &stream, &at_end)) {
    session->Handle(std::make_shared<v1::WorkerMessage>(message));
    coordinator.Pass(absl::Milliseconds(100));
    message.Clear();
  }
  session->Ended();
  coordinator.Pass(absl::Seconds(data[0] / 2));
  coordinator.RequireSound();
  return 0;
}

}  // namespace pelab::event_fuzz
