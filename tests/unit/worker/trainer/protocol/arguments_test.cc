#include "worker/trainer/protocol/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::trainer {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::vector<std::string>& words) {
  try {
    ParseArguments(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Arguments, RunReadsEveryOption) {
  const Arguments arguments = ParseArguments({"run",       "--spec",
                                              "a.json",    "--workdir=w",
                                              "--device",  "cuda:3",
                                              "--threads", "2",
                                              "--resume",  "--max-start-epoch",
                                              "7",         "--checkpoint-seconds",
                                              "0.5",       "--checkpoint-epochs",
                                              "5",         "--micro-batch",
                                              "64",        "--files",
                                              "f",         "--parent-fd",
                                              "9"});
  EXPECT_EQ(arguments.command, Command::kRun);
  EXPECT_EQ(arguments.jobs[0].spec, "a.json");
  EXPECT_EQ(arguments.jobs[0].workdir, "w");
  EXPECT_EQ(arguments.device, "cuda:3");
  EXPECT_EQ(arguments.threads, 2);
  EXPECT_TRUE(arguments.resume);
  EXPECT_EQ(arguments.jobs[0].max_start_epoch, 7);
  EXPECT_EQ(arguments.checkpoint_seconds, 0.5);
  EXPECT_EQ(arguments.checkpoint_epochs, 5);
  EXPECT_EQ(arguments.micro_batch, 64);
  EXPECT_EQ(arguments.files, "f");
  EXPECT_EQ(arguments.parent_fd, 9);
}

TEST(Arguments, EachSpecBeginsAJobWithItsOwnOptions) {
  const Arguments arguments =
      ParseArguments({"run", "--spec", "a", "--workdir", "wa", "--max-start-epoch", "3", "--spec",
                      "b", "--workdir", "wb", "--packing", "on", "--threads", "2"});
  ASSERT_EQ(arguments.jobs.size(), 2u);
  EXPECT_EQ(arguments.jobs[0].workdir, "wa");
  EXPECT_EQ(arguments.jobs[0].max_start_epoch, 3);
  EXPECT_EQ(arguments.jobs[1].spec, "b");
  EXPECT_EQ(arguments.jobs[1].workdir, "wb");
  EXPECT_EQ(arguments.jobs[1].max_start_epoch, -1);
  EXPECT_EQ(arguments.packing.way, PackingWay::kOn);
  EXPECT_EQ(arguments.packing.width, 0);
  const auto packing = [](const char* value) {
    return ParseArguments({"run", "--workdir", "w", "--spec", "a", "--packing", value}).packing;
  };
  EXPECT_EQ(packing("8").way, PackingWay::kOn);
  EXPECT_EQ(packing("8").width, 8);
  EXPECT_EQ(packing("off").way, PackingWay::kOff);
  EXPECT_EQ(packing("auto").way, PackingWay::kAuto);
  EXPECT_THROW(packing("0"), UsageError);
  EXPECT_THROW(packing("65"), UsageError);
  EXPECT_THROW(ParseArguments({"run", "--spec", "a", "--workdir", "w", "--spec", "b"}), UsageError);
  EXPECT_THROW(
      ParseArguments({"run", "--spec", "a", "--workdir", "w", "--spec", "b", "--workdir", "w"}),
      UsageError);
  EXPECT_THROW(ParseArguments({"dataset", "--spec", "a", "--spec", "b", "--out", "o"}), UsageError);
}

TEST(Arguments, DefaultsAreThoseOfTheHelp) {
  const Arguments arguments = ParseArguments({"run", "--spec", "a", "--workdir", "w"});
  EXPECT_EQ(arguments.device, "cpu");
  EXPECT_EQ(arguments.threads, 1);
  EXPECT_FALSE(arguments.resume);
  EXPECT_EQ(arguments.jobs[0].max_start_epoch, -1);
  EXPECT_EQ(arguments.checkpoint_seconds, 30);
  EXPECT_EQ(arguments.checkpoint_epochs, 0);
  EXPECT_EQ(arguments.micro_batch, std::nullopt);
  EXPECT_EQ(arguments.files, "");
  EXPECT_EQ(arguments.parent_fd, -1);
}

TEST(Arguments, AnalyzeReadsItsOptionsAndNoneOfTraining) {
  const std::vector<std::string> least = {"analyze", "--spec",    "a.json", "--weights",
                                          "b",       "--workdir", "w"};
  const Arguments arguments = ParseArguments(least);
  EXPECT_EQ(arguments.command, Command::kAnalyze);
  EXPECT_EQ(arguments.jobs[0].spec, "a.json");
  EXPECT_EQ(arguments.weights, "b");
  EXPECT_EQ(arguments.jobs[0].workdir, "w");
  EXPECT_EQ(arguments.device, "cpu");
  EXPECT_EQ(arguments.threads, 1);
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = least;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Arguments all =
      ParseArguments(with({"--device=cuda:1", "--threads", "3", "--files=f", "--parent-fd", "5"}));
  EXPECT_EQ(all.device, "cuda:1");
  EXPECT_EQ(all.threads, 3);
  EXPECT_EQ(all.files, "f");
  EXPECT_EQ(all.parent_fd, 5);
  for (const char* option :
       {"--resume", "--micro-batch", "--checkpoint-seconds", "--max-start-epoch", "--out"}) {
    EXPECT_THAT(Refusal(with({option, "1"})),
                HasSubstr(std::string("unknown option \"") + option + "\" of analyze"));
  }
  EXPECT_THAT(Refusal({"analyze", "--spec", "a", "--workdir", "w"}),
              HasSubstr("--weights FILE is missing"));
  EXPECT_THAT(Refusal({"analyze", "--weights", "a", "--workdir", "w"}),
              HasSubstr("--spec FILE is missing"));
  EXPECT_THAT(Refusal({"analyze", "--spec", "a", "--weights", "w"}),
              HasSubstr("--workdir DIR is missing"));
  EXPECT_THAT(Refusal({"run", "--spec", "a", "--workdir", "w", "--weights", "b"}),
              HasSubstr("unknown option \"--weights\" of run"));
}

TEST(Arguments, HelpNamesEveryOption) {
  for (const char* option :
       {"--spec", "--workdir", "--device", "--threads", "--resume", "--max-start-epoch",
        "--checkpoint-seconds", "--micro-batch", "--files", "--weights", "--parent-fd", "--out",
        "analyze", "capabilities", "75"}) {
    EXPECT_THAT(std::string(HelpText()), HasSubstr(option));
  }
  EXPECT_EQ(ParseArguments({"--help"}).command, Command::kHelp);
  EXPECT_EQ(ParseArguments({"run", "--help"}).command, Command::kHelp);
  EXPECT_EQ(ParseArguments({"--version"}).command, Command::kVersion);
}

TEST(Arguments, WrongUseIsRefusedWithWhatIsAllowed) {
  const std::vector<std::string> run = {"run", "--spec", "a", "--workdir", "w"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = run;
    words.insert(words.end(), more.begin(), more.end());
    return Refusal(words);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_THAT(Refusal({}), HasSubstr("a command is missing"));
  EXPECT_THAT(
      Refusal({"train"}),
      HasSubstr("unknown command \"train\"; known: run, analyze, dataset, check, capabilities"));
  EXPECT_THAT(Refusal({"run", "--workdir", "w"}), HasSubstr("--spec FILE is missing"));
  EXPECT_THAT(Refusal({"run", "--spec", "a"}), HasSubstr("--workdir DIR is missing"));
  EXPECT_THAT(Refusal({"dataset", "--spec", "a"}), HasSubstr("--out FILE is missing"));
  EXPECT_THAT(with({"--bogus", "1"}), HasSubstr("unknown option \"--bogus\" of run"));
  EXPECT_THAT(with({"--threads"}), HasSubstr("--threads needs a value"));
  EXPECT_THAT(Refusal({"capabilities", "--spec", "a"}), HasSubstr("unknown option \"--spec\""));
  for (const char* threads : {"0", "-1", "1.5", "1025", "two", "", "1x", "99999999999999999999"}) {
    EXPECT_THAT(with({"--threads", threads}), HasSubstr("an integer from 1 to 1024")) << threads;
  }
  for (const char* device : {"gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:128", "CPU", ""}) {
    EXPECT_THAT(with({"--device", device}), HasSubstr("allowed")) << device;
  }
  for (const char* seconds : {"-1", "inf", "nan", "1s", ""}) {
    EXPECT_THAT(with({"--checkpoint-seconds", seconds}), HasSubstr("a number of seconds from 0"))
        << seconds;
  }
  EXPECT_THAT(with({"--max-start-epoch", "-1"}), HasSubstr("allowed"));
  for (const char* micro_batch : {"-1", "1.5", "all", "", "1073741825"}) {
    EXPECT_THAT(with({"--micro-batch", micro_batch}),
                HasSubstr("allowed: auto, or an integer from 0 to 1073741824"))
        << micro_batch;
  }
  EXPECT_THAT(with({"--parent-fd", "-1"}), HasSubstr("allowed"));
  EXPECT_THAT(with({"--spec="}), HasSubstr("allowed: a path"));
}

}  // namespace
}  // namespace pelab::trainer
