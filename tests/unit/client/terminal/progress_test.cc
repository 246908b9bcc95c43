#include "client/terminal/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace pelab::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProgressState State(std::uint64_t succeeded, std::uint64_t epochs_done) {
  ProgressState state;
  state.name = "quick";
  state.jobs = 12;
  state.succeeded = succeeded;
  state.running = 2;
  state.epochs = 180;
  state.epochs_done = epochs_done;
  state.running_jobs = {{"rope distance seed 0", 15, 3, 0.5, "vm cpu"},
                        {"nope counting seed 1", 15, 0, 0, "vm cpu"}};
  return state;
}

TEST(BarTest, FillsWithTheFraction) {
  EXPECT_EQ(Bar(0.5, 10, {}), "[#####-----]");
  EXPECT_EQ(Bar(0, 4, {}), "[----]");
  EXPECT_EQ(Bar(1.5, 4, {}), "[####]");
}

TEST(ProgressViewTest, AJobThatIsAnalyzedHasNoEpoch) {
  ProgressState state = State(0, 60);
  state.running_jobs[0].analysing = true;
  std::string drawn;
  ProgressView view({.color = false, .width = 100}, /*redraw=*/true,
                    [&](const std::string& text) { drawn += text; });
  view.Update(0, state);
  EXPECT_THAT(drawn, HasSubstr("rope distance seed 0          analyzing  test accuracy 0.5000"));
  EXPECT_THAT(drawn, HasSubstr("nope counting seed 1          epoch 0/15"));
}

TEST(EtaTest, FollowsThePaceSinceTheFirstEpoch) {
  Eta eta;
  EXPECT_FALSE(eta.Update(80, State(0, 60)).has_value()) << "epochs stored earlier are no pace";
  EXPECT_FALSE(eta.Update(95, State(0, 60)).has_value());
  EXPECT_FALSE(eta.Update(100, State(0, 62)).has_value()) << "the start of trainers is no pace";
  EXPECT_FALSE(eta.Update(105, State(0, 62)).has_value());
  EXPECT_DOUBLE_EQ(*eta.Update(109, State(0, 80)), 50);  // 2 per second, 100 left
  EXPECT_FALSE(eta.Update(120, State(12, 180)).has_value());
}

TEST(ProgressViewTest, PlainLinesOnlyWhenSomethingEnded) {
  std::string out;
  ProgressView view({}, /*redraw=*/false, [&](const std::string& text) { out += text; });
  view.Update(0, State(0, 0));
  view.Update(1, State(0, 1));
  view.Update(2, State(0, 2));
  EXPECT_EQ(out, "quick: 0/12 jobs, 0/180 epochs, 2 running\n");
  out.clear();
  view.Update(3, State(1, 15));
  EXPECT_EQ(out, "quick: 1/12 jobs, 15/180 epochs, 2 running, about 24s left\n");
  out.clear();
  view.Update(13.5, State(1, 16));
  EXPECT_THAT(out, HasSubstr("16/180")) << "a sign of life";
  out.clear();
  view.Update(30, State(1, 16));
  EXPECT_EQ(out, "") << "nothing new to say";
  view.Finish();
  EXPECT_EQ(out, "");
}

TEST(ProgressViewTest, RedrawsInPlaceAndLeavesNothing) {
  std::string out;
  ProgressView view({.color = true, .width = 80}, /*redraw=*/true,
                    [&](const std::string& text) { out += text; });
  view.Update(0, State(0, 0));
  EXPECT_THAT(out, HasSubstr("rope distance seed 0"));
  EXPECT_THAT(out, HasSubstr("epoch 3/15  test accuracy 0.5000"));
  EXPECT_THAT(out, HasSubstr("epoch 0/15  vm cpu")) << "no accuracy before the first epoch";
  EXPECT_THAT(out, Not(HasSubstr("\x1b[J")));
  out.clear();
  view.Update(1, State(0, 1));
  EXPECT_TRUE(out.starts_with("\x1b[3A\x1b[J")) << "three lines up";
  out.clear();
  view.Finish();
  EXPECT_EQ(out, "\x1b[3A\x1b[J");
  view.Finish();
  EXPECT_EQ(out, "\x1b[3A\x1b[J");
}

TEST(ProgressViewTest, TheGridAsFarAsThereIsRoom) {
  ProgressState state = State(0, 0);
  state.grid.title = "pe";
  state.grid.tasks = {"distance"};
  for (const char* pe : {"nope", "rope", "alibi"}) {
    state.grid.rows.push_back({pe, {Grid::Cell{.seeds = {Grid::Mark::kQueued}}}});
  }
  const auto draw = [&](int height) {
    std::string out;
    ProgressView view({.color = true, .width = 80, .height = height}, /*redraw=*/true,
                      [&](const std::string& text) { out += text; });
    view.Update(0, state);
    return out;
  };
  EXPECT_THAT(draw(24), HasSubstr("alibi"));
  const std::string low = draw(9);  // two lines stay free, three show the progress
  EXPECT_THAT(low, HasSubstr("nope"));
  EXPECT_THAT(low, HasSubstr("and 1 more rows"));
  EXPECT_THAT(draw(7), Not(HasSubstr("distance  "))) << "no room for a row";
  state.grid = {};
  EXPECT_THAT(draw(24), Not(HasSubstr("test accuracy 0-1")));
}

TEST(ProgressViewTest, SaysWhyItWaits) {
  std::string out;
  ProgressView view({}, false, [&](const std::string& text) { out += text; });
  ProgressState state = State(0, 0);
  state.running = 0;
  state.waiting_reason = "no worker is connected\x1b";
  view.Update(0, state);
  EXPECT_THAT(out, HasSubstr("waiting: no worker is connected\\x1b"));
}

}  // namespace
}  // namespace pelab::render
