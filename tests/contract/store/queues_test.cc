// Queues of pelab-scale in the store.
#include "server/limits.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

class QueuesTest : public StoreTest {
 protected:
  QueueStored Put(const std::string& name, const std::string& settings = "{}") {
    return Do<QueueStored>(PutQueue{name, settings, 100});
  }
  QueueStored Pause(const std::string& name, const std::string& reason, bool keep = false,
                    std::int64_t now = 200) {
    return Do<QueueStored>(
        PauseQueue{.name = name, .reason = reason, .keep_reason = keep, .now = now});
  }
  std::vector<StoredQueue> All() {
    auto queues = store_->Queues();
    EXPECT_TRUE(queues.ok()) << queues.status();
    return *std::move(queues);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, QueuesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(QueuesTest, ComeBackAsTheyWereStored) {
  EXPECT_TRUE(All().empty());
  EXPECT_EQ(Put("gpu", R"({"slots":2})").refusal, QueueStored::kNone);
  Put("cpu");
  Pause("gpu", "maintenance");
  const auto queues = All();
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0].name, "cpu");
  EXPECT_EQ(queues[0].paused_reason, "");
  EXPECT_EQ(queues[1].settings_json, R"({"slots":2})");
  EXPECT_EQ(queues[1].paused_reason, "maintenance");
  EXPECT_EQ(queues[1].paused_at, 200);
  EXPECT_FALSE(queues[1].removing);
}

TEST_P(QueuesTest, NewSettingsKeepThePauseAndCallARemovalOff) {
  Put("gpu");
  Pause("gpu", "maintenance");
  Do<QueueStored>(RemoveQueue{.name = "gpu", .mark = true});
  EXPECT_TRUE(All()[0].removing);
  const QueueStored put = Put("gpu", R"({"slots":2})");
  EXPECT_EQ(put.queue.paused_reason, "maintenance");
  EXPECT_FALSE(put.queue.removing);
  EXPECT_EQ(put.queue.settings_json, R"({"slots":2})");
}

TEST_P(QueuesTest, PausesBeginAndEnd) {
  Put("gpu");
  Pause("gpu", "first", /*keep=*/true);
  EXPECT_EQ(Pause("gpu", "second", /*keep=*/true, 300).queue.paused_reason, "first");
  const QueueStored third = Pause("gpu", "third", /*keep=*/false, 300);
  EXPECT_EQ(third.queue.paused_reason, "third");
  EXPECT_EQ(third.queue.paused_at, 200) << "paused since then";
  EXPECT_EQ(Pause("gpu", "").queue.paused_at, 0);
  EXPECT_EQ(Pause("gpu", "").refusal, QueueStored::kNone);
  EXPECT_EQ(Pause("none", "why").refusal, QueueStored::kUnknown);
}

TEST_P(QueuesTest, AreRemovedAtOnceOrWhenMarked) {
  Put("gpu");
  EXPECT_EQ(Do<QueueStored>(RemoveQueue{.name = "gpu", .only_marked = true}).refusal,
            QueueStored::kUnknown);
  EXPECT_FALSE(Do<QueueStored>(RemoveQueue{.name = "gpu", .mark = true}).removed);
  EXPECT_TRUE(Do<QueueStored>(RemoveQueue{.name = "gpu", .only_marked = true}).removed);
  EXPECT_TRUE(All().empty());
  Put("gpu");
  EXPECT_TRUE(Do<QueueStored>(RemoveQueue{.name = "gpu"}).removed);
  EXPECT_EQ(Do<QueueStored>(RemoveQueue{.name = "gpu"}).refusal, QueueStored::kUnknown);
}

TEST_P(QueuesTest, ThereAreSoManyAtMost) {
  for (int i = 0; i < limits::kQueues; ++i) Put(absl::StrCat("q", i));
  EXPECT_EQ(Put("one_more").refusal, QueueStored::kTooMany);
  EXPECT_EQ(Put("q7", "{\"slots\":3}").refusal, QueueStored::kNone) << "it is there already";
  EXPECT_EQ(All().size(), static_cast<std::size_t>(limits::kQueues));
}

}  // namespace
}  // namespace pelab::store
