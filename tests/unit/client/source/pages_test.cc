#include "client/source/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace pelab::client {
namespace {

using ::testing::ElementsAre;

class Page {
 public:
  Page(int number, std::string next) : number_(number), next_(std::move(next)) {}
  int number() const { return number_; }
  const std::string& next() const { return next_; }

 private:
  int number_;
  std::string next_;
};

// Four pages, fetched with "", "1", "2" and "3". Fails if two calls overlap.
class PagesTest : public ::testing::Test {
 protected:
  absl::StatusOr<Page> Fetch(const std::string& after) {
    EXPECT_EQ(running_.fetch_add(1), 0) << "two at once";
    const int number = after.empty() ? 0 : std::stoi(after);
    ++fetched_;
    running_ = 0;
    if (number == broken_) return absl::UnavailableError("gone");
    if (number == back_ && fetched_ < kEnough) return Page(number, "1");
    return Page(number, number == 3 ? "" : std::to_string(number + 1));
  }
  absl::Status Read(int stop_at = -1) {
    return ReadPages([this](const std::string& after) { return Fetch(after); },
                     [&](const Page& page) {
                       seen_.push_back(page.number());
                       return page.number() == stop_at ? absl::CancelledError("enough")
                                                       : absl::OkStatus();
                     });
  }

  int broken_ = -1;
  int back_ = -1;  // the page that leads back to the second one
  std::atomic<int> running_{0};
  std::atomic<int> fetched_{0};
  static constexpr int kEnough = 100;  // ends a test that would never end
  std::vector<int> seen_;
};

TEST_F(PagesTest, ComeInOrder) {
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(seen_, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(fetched_, 4);
}

TEST_F(PagesTest, ThatRepeatAreAnError) {
  back_ = 2;
  const absl::Status status = Read(/*stop_at=*/3);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("repeats its pages"));
  EXPECT_THAT(seen_, ElementsAre(0, 1));
  EXPECT_EQ(fetched_, 3);
}

TEST_F(PagesTest, EndWithAnErrorOfEitherSide) {
  broken_ = 2;
  EXPECT_EQ(Read().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(seen_, ElementsAre(0, 1));
  seen_.clear();
  fetched_ = 0;
  EXPECT_EQ(Read(/*stop_at=*/0).code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(seen_, ElementsAre(0));
  EXPECT_EQ(fetched_, 2) << "one ahead";
  broken_ = 0;
  seen_.clear();
  EXPECT_EQ(Read().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(seen_.empty());
}

}  // namespace
}  // namespace pelab::client
