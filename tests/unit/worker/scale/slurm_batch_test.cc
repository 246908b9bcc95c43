#include "worker/scale/slurm_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::scale {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Queue Gpu() {
  return {.name = "gpu",
          .time_limit = absl::Seconds(5401),
          .pack = 8,
          .sbatch = {"--partition=gpu"},
          .workdir = "/scratch/it's mine",
          .worker = {"--server", "head:7470", "--token-file", "a b"}};
}

TEST(SlurmBatchTest, LinesOfOthersAreLeftOut) {
  const auto found = ParseSqueue(
      "11|PENDING|(Priority)|pelab:head:7470:gpu\n"
      "12|RUNNING|n1|pelab:head:7470:gpu\n"
      "13|RUNNING|n2|pelab:other:7470:gpu\n"
      "14|RUNNING|n2|(null)\n"
      "15|PENDING|(Resources)|pelab:head:7470:cpu\n"
      "nonsense\n\n",
      "head:7470");
  ASSERT_THAT(found, SizeIs(2));
  ASSERT_THAT(found.at("gpu"), SizeIs(2));
  EXPECT_EQ(found.at("gpu")[0].id, "11");
  EXPECT_EQ(found.at("gpu")[0].state, "PENDING");
  EXPECT_EQ(found.at("gpu")[0].reason, "(Priority)");
  EXPECT_EQ(found.at("gpu")[1].reason, "n1");
  ASSERT_THAT(found.at("cpu"), SizeIs(1));
}

TEST(SlurmBatchTest, TheScriptStartsTheWorkerBySrun) {
  const TraceContext span{"0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"};
  EXPECT_EQ(ScriptOf(Gpu(), span),
            "#!/bin/bash\n"
            "export TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"
            "exec srun --ntasks=1 --kill-on-bad-exit=1 'pelab-worker' --name "
            "pelab-gpu-\"$SLURM_JOB_ID\" --workdir '/scratch/it'\\''s mine'/\"$SLURM_JOB_ID\" "
            "--time-limit slurm --idle-exit 5m --pack 8 '--server' 'head:7470' '--token-file' "
            "'a b'\n");
}

TEST(SlurmBatchTest, TimeIsInWholeMinutes) {
  EXPECT_THAT(SbatchArguments(Gpu(), "head:7470"),
              ElementsAre("--parsable", "--no-requeue", "--job-name=pelab-gpu",
                          "--comment=pelab:head:7470:gpu", "--time=91", "--signal=TERM@120",
                          "--partition=gpu"));
}

}  // namespace
}  // namespace pelab::scale
