#include "core/trace/span_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/temporary_folder.h"

namespace pelab::trace {
namespace {

using testing::HasSubstr;

class SpanFileTest : public testing::Test {
 protected:
  std::unique_ptr<SpanFile> Open() {
    auto file = SpanFile::Open(path_, "program", "one");
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  // The names of the spans in the file, in its order. Every line must be whole.
  static std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    for (const auto line : absl::StrSplit(ReadFile(path, 64 << 20).value_or(""), '\n')) {
      if (line.empty()) continue;
      const auto json = nlohmann::json::parse(std::string(line), nullptr, false);
      EXPECT_FALSE(json.is_discarded()) << line;
      names.push_back(json["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"]);
    }
    return names;
  }
  static Span Named(const std::string& name) { return {.context = NewTrace(), .name = name}; }
  static bool Await(const std::function<bool()>& holds) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!holds() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
    return holds();
  }

  TemporaryFolder folder_ = *TemporaryFolder::Make("spans");
  const std::string path_ = folder_.path() + "/spans.jsonl";
};

TEST_F(SpanFileTest, WritesWhatWasAddedAndAppendsToWhatIsThere) {
  Open()->Add(Named("a"));
  {
    const auto file = Open();
    file->Add(Named("b"));
    file->Add(Named("c"));
  }
  EXPECT_THAT(Names(path_), testing::ElementsAre("a", "b", "c"));
  struct stat status = {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(SpanFileTest, TwoProgramsNeverMixTheirLines) {
  {
    const auto first = Open();
    const auto second = Open();
    const auto fill = [](SpanFile& file, const std::string& name) {
      for (int i = 0; i < 3000; ++i) {
        Span span = Named(absl::StrCat(name, i));
        span.error = std::string(500, 'x');
        file.Add(std::move(span));
      }
    };
    std::thread other([&] { fill(*first, "a"); });
    fill(*second, "b");
    other.join();
  }
  const std::vector<std::string> names = Names(path_);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 6000u);
}

TEST_F(SpanFileTest, FollowsAFileThatWasRotated) {
  const auto file = Open();
  file->Add(Named("old"));
  ASSERT_TRUE(Await([&] { return Names(path_).size() == 1; }));
  ASSERT_EQ(std::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  file->Add(Named("new"));
  EXPECT_TRUE(Await([&] { return Names(path_).size() == 1; }));
  EXPECT_THAT(Names(path_), testing::ElementsAre("new"));
  EXPECT_THAT(Names(path_ + ".1"), testing::ElementsAre("old"));
}

TEST_F(SpanFileTest, SaysWhyItCannotBeOpened) {
  EXPECT_THAT(std::string(SpanFile::Open(folder_.path() + "/no/x", "p", "").status().message()),
              HasSubstr("/no/x"));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(std::string(SpanFile::Open(path_, "p", "").status().message()),
              HasSubstr("is a pipe, not a file of spans"));
}

TEST_F(SpanFileTest, CountsWhatCannotBeWritten) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto file = Open();
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  file->Add(Named("lost"));
  EXPECT_TRUE(Await([&] { return file->dropped() == 1; }));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  file->Add(Named("kept"));
  EXPECT_TRUE(Await([&] { return Names(path_).size() == 1; }));
  EXPECT_EQ(file->dropped(), 1u);
}

TEST_F(SpanFileTest, KeepsOnlySoManyWaiting) {
  const auto file = *SpanFile::Open(path_, "program", "", /*most_waiting=*/10);
  int added = 0;
  EXPECT_TRUE(Await([&] {
    for (int i = 0; i < 1000; ++i) file->Add(Named(absl::StrCat(added++)));
    return file->dropped() > 0;
  }));
  const std::uint64_t dropped = file->Finish();
  const std::vector<std::string> names = Names(path_);
  EXPECT_EQ(names.size() + dropped, static_cast<std::size_t>(added));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(names.at(static_cast<std::size_t>(i)), absl::StrCat(i));
}

// As for a program that makes its ShutdownSignal after the file.
TEST_F(SpanFileTest, TakesNoSignals) {
  const auto file = Open();
  sigset_t wanted;
  sigset_t before;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &wanted, &before);
  // If another thread took it, this process would end.
  kill(getpid(), SIGUSR1);
  int signal = 0;
  EXPECT_EQ(sigwait(&wanted, &signal), 0);
  EXPECT_EQ(signal, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace pelab::trace
