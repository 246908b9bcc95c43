// Programs that promise to fork trainers and do something else. tests/e2e/test_preload.py runs the
// trainer that keeps the promise.
#include "worker/agent/preloaded_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::agent {
namespace {

class PreloadedTrainerTest : public testing::Test {
 protected:
  // A trainer that runs the shell commands when it is preloaded, and else prints its words. It
  // notes each time that it is preloaded.
  void WriteTrainer(const std::string& commands) {
    std::ofstream(trainer_) << "#!/bin/sh\nif [ \"$1\" = preload ]; then\n  echo once >>" << notes_
                            << "\n  " << commands << "\n  exit\nfi\necho plain \"$@\"\n";
    ASSERT_EQ(chmod(trainer_.c_str(), 0755), 0);
  }
  PreloadedTrainer Make(absl::Duration patience = absl::Seconds(20)) {
    return PreloadedTrainer({trainer_, {}, "worker:0", patience});
  }
  // What a trainer prints that `preloaded` starts.
  std::string Output(PreloadedTrainer& preloaded) {
    Pipe pipe = *MakePipe();
    SpawnOptions options;
    options.argv = {trainer_, "run", "job.json"};
    options.fds = {{pipe.write.get(), 1}};
    auto process = preloaded.Start(options);
    EXPECT_THAT(process, IsOk());
    pipe.write.Reset();
    std::string text;
    char buffer[256];
    for (ssize_t got = 0; (got = read(pipe.read.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    EXPECT_TRUE(process->Wait().ok());
    return text;
  }
  std::size_t TimesPreloaded() {
    const auto notes = ReadFile(notes_, 1 << 10);
    return notes.ok() ? notes->size() / sizeof "once" : 0;
  }

  TempDir dir_;
  const std::string trainer_ = dir_ / "trainer";
  const std::string notes_ = dir_ / "notes";
};

TEST_F(PreloadedTrainerTest, OneThatEndsIsTriedThreeTimes) {
  WriteTrainer("exit 1");
  PreloadedTrainer preloaded = Make();
  for (int start = 0; start < 5; ++start) EXPECT_EQ(Output(preloaded), "plain run job.json\n");
  EXPECT_EQ(TimesPreloaded(), 3);
}

TEST_F(PreloadedTrainerTest, AnswersThatAreNoProcessAreNotBelieved) {
  for (const char* answer : {"what", "-1", "0", "1", "99999999999", "error: no memory"}) {
    SCOPED_TRACE(answer);
    WriteTrainer(absl::StrCat("dd bs=1 count=1 <&3 >&2 2>/dev/null; printf '", answer, "' >&3"));
    PreloadedTrainer preloaded = Make();
    EXPECT_EQ(Output(preloaded), "plain run job.json\n");
  }
}

TEST_F(PreloadedTrainerTest, AProcessThatIsNoChildIsNotTaken) {
  WriteTrainer("sleep 20 & dd bs=1 count=1 <&3 >&2 2>/dev/null; printf $! >&3; wait");
  PreloadedTrainer preloaded = Make();
  EXPECT_EQ(Output(preloaded), "plain run job.json\n");
}

TEST_F(PreloadedTrainerTest, SilenceIsWaitedForOnce) {
  WriteTrainer("exec sleep 20");
  PreloadedTrainer preloaded = Make(absl::Milliseconds(100));
  EXPECT_EQ(Output(preloaded), "plain run job.json\n");
}

TEST_F(PreloadedTrainerTest, ATrainerThatIsNotThereIsTheErrorOfOrdinaryStarts) {
  PreloadedTrainer preloaded = Make();
  SpawnOptions options;
  options.argv = {trainer_, "run"};
  EXPECT_EQ(preloaded.Start(options).status().message(),
            Process::Spawn(options).status().message());
}

}  // namespace
}  // namespace pelab::agent
