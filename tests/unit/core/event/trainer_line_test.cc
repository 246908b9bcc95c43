#include "core/event/trainer_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::event {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrainerLine Parsed(const std::string& line) {
  auto parsed = ParseTrainerLine(line, "12", "/tmp");
  EXPECT_THAT(parsed, IsOk());
  return *std::move(parsed);
}
std::string Complaint(const std::string& line, const std::string& directory = "/tmp") {
  const auto parsed = ParseTrainerLine(line, "12", directory);
  return parsed.ok() ? "nothing" : std::string(parsed.status().message());
}

TEST(TrainerLine, Hello) {
  const TrainerLine line = Parsed(
      R"({"event":"hello","job":"12","protocol":1,"start_epoch":3,"epochs":9,"device":"cpu",)"
      R"("threads":2,)"
      R"("micro_batch":64,"packing":1,"parameters":4711})");
  const v1::Started& started = std::get<FactLine>(line).event.started();
  EXPECT_EQ(started.start_epoch(), 3);
  EXPECT_EQ(started.epochs(), 9);
  EXPECT_EQ(started.execution().threads(), 2);
  EXPECT_EQ(started.execution().micro_batch(), 64);
  EXPECT_EQ(started.execution().packing(), 1);
  EXPECT_THAT(started.environment_json(), HasSubstr("\"micro_batch\":64"));
  EXPECT_THAT(started.environment_json(), HasSubstr("\"parameters\":4711"));
  EXPECT_THAT(started.environment_json(), Not(HasSubstr("\"job\"")));
  EXPECT_FALSE(started.better_alone());
  EXPECT_THAT(Complaint(R"({"event":"hello","job":"12","protocol":2,"start_epoch":0,"epochs":9})"),
              HasSubstr("speaks protocol 2; this program reads 1"));
  const std::string start =
      R"({"event":"hello","job":"12","protocol":1,"start_epoch":0,"epochs":9,)";
  EXPECT_THAT(Complaint(start + R"("threads":0,"micro_batch":0,"packing":1})"),
              HasSubstr("\"threads\" is 0"));
  EXPECT_THAT(Complaint(start + R"("threads":1,"packing":1})"), HasSubstr("no \"micro_batch\""));
  EXPECT_THAT(Complaint(start + R"("threads":1,"micro_batch":-1,"packing":1})"),
              HasSubstr("\"micro_batch\" is -1"));
  EXPECT_THAT(Complaint(start + R"("threads":1,"micro_batch":0})"), HasSubstr("no \"packing\""));
}

TEST(TrainerLine, NestedLinesAreRefused) {
  const int deep = 300'000;
  const std::string nested = std::string(deep, '[') + std::string(deep, ']');
  const std::string hello =
      R"({"event":"hello","job":"12","protocol":1,"start_epoch":0,"epochs":9,"threads":1,)"
      R"("micro_batch":0,"packing":1)";
  for (const std::string& line : {nested, hello + ",\"more\":" + nested + "}",
                                  R"({"event":"epoch","job":"12","epoch":)" + nested + "}"}) {
    EXPECT_THAT(Complaint(line), HasSubstr("printed a line that is nested more than 64 deep: "));
  }
  const TempDir dir;
  std::ofstream(dir / "r.json") << nested;
  EXPECT_THAT(Complaint(R"({"event":"analysis","job":"12","name":"x","version":1,"parameters":{},)"
                        R"("file":"r.json"})",
                        dir.path()),
              HasSubstr("analysis x: its result is not JSON"));
}

TEST(TrainerLine, AHelloSaysWhatWasFoundQuicker) {
  const std::string start =
      R"({"event":"hello","job":"12","protocol":1,"start_epoch":0,"epochs":9,"threads":1,)"
      R"("micro_batch":0,)"
      R"("packing":1)";
  const auto alone = [&](const std::string& rest) {
    return std::get<FactLine>(Parsed(start + rest)).event.started().better_alone();
  };
  EXPECT_TRUE(alone(R"(,"step_seconds":{"alone":0.1,"packed":0.2}})"));
  EXPECT_FALSE(alone(R"(,"members":4,"step_seconds":{"alone":0.2,"packed":0.1}})"));
  EXPECT_FALSE(alone(R"(,"members":4})")) << "it was told to";
}

TEST(TrainerLine, OfSeveralJobsEachLineIsOfOne) {
  const std::map<std::string, std::string> jobs = {{"12", "/a"}, {"13", "/b"}};
  const auto kept =
      ParseTrainerLine(R"({"event":"checkpoint","job":"13","epoch":4,"file":"c"})", jobs);
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->job, "13");
  EXPECT_EQ(std::get<CheckpointLine>(kept->line).epoch, 4);
  EXPECT_THAT(
      ParseTrainerLine(R"({"event":"done","job":"14","wall_seconds":1})", jobs),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(R"(event done is of job "14"; this trainer was given "12", "13")")));
  EXPECT_THAT(ParseTrainerLine(R"({"event":"done","wall_seconds":1})", jobs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no \"job\"")));
}

TEST(TrainerLine, AnAnalysisIsReadWhereItsJobWorks) {
  const TempDir dir;
  for (const char* job : {"12", "13"}) {
    std::filesystem::create_directories(dir / job);
    std::ofstream(absl::StrCat(dir / job, "/r.json")) << "{\"of\":" << job << "}";
  }
  const std::map<std::string, std::string> jobs = {{"12", dir / "12"}, {"13", dir / "13"}};
  const auto parsed = ParseTrainerLine(
      R"({"event":"analysis","job":"13","name":"x","version":1,"parameters":{},"file":"r.json"})",
      jobs);
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(std::get<FactLine>(parsed->line).event.analysis().result_json(), "{\"of\":13}");
}

TEST(TrainerLine, EpochKeepsEveryBitOfItsNumbers) {
  const TrainerLine line =
      Parsed(R"({"event":"epoch","job":"12","epoch":4,"train_loss":0.30000000000000004,)"
             R"("train_correct":17,"train_total":70000,)"
             R"("test_loss":5e-324,"test_correct":30000,"test_total":30000,)"
             R"("learning_rate":1.7976931348623157e308,"seconds":2,)"
             R"("train_eval_correct":12,"train_eval_total":1000})");
  const v1::Epoch& epoch = std::get<FactLine>(line).event.epoch();
  EXPECT_EQ(epoch.epoch(), 4);
  EXPECT_EQ(epoch.train_loss(), 0.30000000000000004);
  EXPECT_EQ(epoch.test_loss(), 5e-324);
  EXPECT_EQ(epoch.learning_rate(), 1.7976931348623157e308);
  EXPECT_EQ(epoch.train_correct(), 17);
  EXPECT_EQ(epoch.test_total(), 30000);
  EXPECT_EQ(epoch.seconds(), 2);
  EXPECT_EQ(epoch.train_eval_correct(), 12);
  EXPECT_EQ(epoch.train_eval_total(), 1000);
}

// 2 layers of 3 heads, one of which does not exist. `wrong` replaces members.
Json AblationObject(const Json& wrong = Json::object()) {
  Json event = Json::parse(R"({
    "event": "head_ablation", "job": "12", "version": 2,
    "parameters": {"split": "test", "method": "zero"}, "total": 10, "intact_correct": 9,
    "intact_nll": 0.75, "chance": 0.1, "seconds": 0.25,
    "correct": [[1, 2, 3], [4, 9, null]],
    "lost": [[8, 7, 6], [6, 1, null]],
    "gained": [[0, 0, 0], [1, 1, null]],
    "nll": [[3.5, 3, 2.5], [2, 0.75, null]],
    "nll_standard_error": [[0.5, 0.25, 0.125], [0.5, 0, null]]})");
  event.update(wrong);
  return event;
}

TEST(TrainerLine, HeadAblation) {
  const TrainerLine line = Parsed(AblationObject().dump());
  const v1::HeadAblation& ablation = std::get<FactLine>(line).event.head_ablation();
  EXPECT_EQ(ablation.layers(), 2);
  EXPECT_EQ(ablation.heads(), 3);
  EXPECT_THAT(ablation.correct(), ElementsAre(1, 2, 3, 4, 9, 0));
  EXPECT_THAT(ablation.lost(), ElementsAre(8, 7, 6, 6, 1, 0));
  EXPECT_THAT(ablation.gained(), ElementsAre(0, 0, 0, 1, 1, 0));
  EXPECT_THAT(ablation.nll(), ElementsAre(3.5, 3, 2.5, 2, 0.75, 0));
  EXPECT_THAT(ablation.nll_standard_error(), ElementsAre(0.5, 0.25, 0.125, 0.5, 0, 0));
  EXPECT_THAT(ablation.missing(), ElementsAre(false, false, false, false, false, true));
  EXPECT_EQ(ablation.intact_nll(), 0.75);
  EXPECT_EQ(ablation.chance(), 0.1);
  EXPECT_EQ(ablation.parameters_json(), R"({"method":"zero","split":"test"})");  // sorted: RFC 8785
  EXPECT_EQ(ablation.version(), 2);

  Json whole = AblationObject();
  for (const char* name : {"correct", "lost", "gained", "nll", "nll_standard_error"}) {
    whole[name][1].erase(2);
    whole[name][0].erase(2);
  }
  EXPECT_EQ(std::get<FactLine>(Parsed(whole.dump())).event.head_ablation().missing_size(), 0);
}

// The error message if one member is replaced by other JSON.
std::string AblationComplaint(const char* member, const char* json) {
  Json wrong = Json::object();
  wrong[member] = Json::parse(json);
  return Complaint(AblationObject(wrong).dump());
}

TEST(TrainerLine, HeadAblationsThatCannotBe) {
  EXPECT_EQ(Complaint(AblationObject().dump()), "nothing");
  for (const char* name : {"intact_nll", "chance", "correct", "lost", "gained", "nll",
                           "nll_standard_error", "total", "intact_correct", "version", "seconds"}) {
    Json event = AblationObject();
    event.erase(name);
    EXPECT_THAT(Complaint(event.dump()), HasSubstr(absl::StrCat("has no \"", name, "\"")));
  }
  EXPECT_THAT(AblationComplaint("correct", "[]"), HasSubstr("array of arrays"));
  EXPECT_THAT(AblationComplaint("correct", "[[1,2,3],[4,9]]"), HasSubstr("3 entries a layer"));
  EXPECT_THAT(AblationComplaint("correct", "[[1,2,11],[4,9,null]]"),
              HasSubstr("layer 0 head 2: \"correct\" is 11; allowed: an integer from 0 to 10"));
  EXPECT_THAT(AblationComplaint("correct", "[[1,2,18446744073709551615],[4,9,null]]"),
              HasSubstr("18446744073709551615; allowed: integers of 64 bits"));
  EXPECT_THAT(AblationComplaint("correct", "[[1,2,3.0],[4,9,null]]"),
              HasSubstr("3.0; allowed: integers"));
  EXPECT_THAT(AblationComplaint("lost", "[[8,7,6]]"), HasSubstr("2 layers, as in \"correct\""));
  EXPECT_THAT(AblationComplaint("lost", "[[8,7,10],[6,1,null]]"),
              HasSubstr("\"lost\" is 10; allowed: an integer from 0 to 9"));
  EXPECT_THAT(AblationComplaint("gained", "[[0,0,2],[1,1,null]]"),
              HasSubstr("\"gained\" is 2; allowed: an integer from 0 to 1"));
  EXPECT_THAT(AblationComplaint("gained", "[[0,0,0],[1,1,0]]"),
              HasSubstr("null exactly where \"correct\" has it"));
  EXPECT_THAT(AblationComplaint("nll", "[[3.5,3,null],[2,0.75,null]]"),
              HasSubstr("null exactly where \"correct\" has it"));
  EXPECT_THAT(AblationComplaint("nll", "[[3.5,-3,2.5],[2,0.75,null]]"),
              HasSubstr("\"nll\" is -3; allowed: a number from 0 on"));
  EXPECT_THAT(AblationComplaint("nll_standard_error", R"([[0.5,"x",0],[0,0,null]])"),
              HasSubstr("allowed: numbers"));
  EXPECT_THAT(AblationComplaint("lost", "[[8,7,7],[6,1,null]]"),
              HasSubstr("layer 0 head 2: it has 3 correct of 9 intact, but 7 lost and 0 gained"));
  EXPECT_THAT(AblationComplaint("chance", "0"), HasSubstr("above 0 and at most 1"));
  EXPECT_THAT(AblationComplaint("intact_nll", "-1"), HasSubstr("a number from 0 on"));
}

TEST(TrainerLine, AnalysisBringsItsFile) {
  TempDir dir;
  std::ofstream(dir / "probe.json") << R"({"x":[1,2]})";
  std::ofstream(dir / "bad.json") << "not json";
  const auto event = [](const std::string& file) {
    return R"({"event":"analysis","job":"12","name":"probe","version":1,"parameters":{},"file":")" +
           file + "\"}";
  };
  const auto line = ParseTrainerLine(event("probe.json"), "12", dir.path());
  ASSERT_THAT(line, IsOk());
  EXPECT_EQ(std::get<FactLine>(*line).event.analysis().result_json(), R"({"x":[1,2]})");
  EXPECT_THAT(Complaint(event("bad.json"), dir.path()),
              HasSubstr("analysis probe: its result is not JSON"));
  EXPECT_THAT(Complaint(event("gone.json"), dir.path()), HasSubstr("no such file"));
  EXPECT_THAT(Complaint(event("../secret"), dir.path()),
              HasSubstr("a path below the work directory"));
  EXPECT_THAT(Complaint(event("/etc/passwd"), dir.path()),
              HasSubstr("a path below the work directory"));
}

TEST(TrainerLine, DoneErrorCheckpointAndTheUnknown) {
  const std::string sha(64, 'a');
  const auto done = std::get<DoneLine>(
      Parsed(R"({"event":"done","job":"12","wall_seconds":3.5,"weights":{"file":"w/x.safetensors",)"
             R"("sha256":")" +
             sha + R"(","bytes":9}})"));
  EXPECT_EQ(done.weights_file, "w/x.safetensors");
  EXPECT_EQ(done.sha256, sha);
  EXPECT_EQ(done.bytes, 9u);
  EXPECT_EQ(done.wall_seconds, 3.5);
  EXPECT_EQ(
      std::get<DoneLine>(Parsed(R"({"event":"done","job":"12","wall_seconds":3.5})")).weights_file,
      "");
  const auto error = std::get<ErrorLine>(
      Parsed(R"({"event":"error","job":"12","kind":"non_finite_loss","message":"NaN at step 3"})"));
  EXPECT_EQ(error.kind, state::ErrorKind::kNonFiniteLoss);
  EXPECT_EQ(error.message, "NaN at step 3");
  EXPECT_EQ(std::get<ErrorLine>(
                Parsed(R"({"event":"error","job":"12","kind":"brand_new","message":"m"})"))
                .kind,
            state::ErrorKind::kInternal);
  EXPECT_EQ(
      std::get<CheckpointLine>(Parsed(R"({"event":"checkpoint","job":"12","epoch":5,"file":"c"})"))
          .epoch,
      5);
  EXPECT_EQ(std::get<UnknownLine>(Parsed(R"({"event":"weather","job":"12"})")).name, "weather");
}

TEST(TrainerLine, EpochsThatCannotBe) {
  const Json epoch = Json::parse(
      R"({"event":"epoch","job":"12","epoch":4,"train_loss":1,"train_correct":1,"train_total":10,)"
      R"("test_loss":1,"test_correct":1,"test_total":10,"learning_rate":0.1,"seconds":1})");
  const auto complaint = [&](const char* name, const Json& value) {
    Json wrong = epoch;
    wrong[name] = value;
    return Complaint(wrong.dump());
  };
  EXPECT_EQ(Complaint(epoch.dump()), "nothing");
  // Trainers need not evaluate training examples.
  EXPECT_FALSE(std::get<FactLine>(Parsed(epoch.dump())).event.epoch().has_train_eval_total());
  EXPECT_THAT(complaint("train_eval_correct", 0), HasSubstr("\"train_eval_total\" is 0"));
  EXPECT_THAT(complaint("epoch", -1), HasSubstr("\"epoch\" is -1; allowed: an integer from 0"));
  EXPECT_THAT(complaint("train_correct", 11),
              HasSubstr("epoch 4: \"train_correct\" is 11; allowed: an integer from 0 to 10"));
  EXPECT_THAT(complaint("test_total", 0), HasSubstr("\"test_total\" is 0; allowed: an integer"));
  EXPECT_THAT(complaint("test_correct", std::uint64_t{1} << 63),
              HasSubstr("allowed: an integer of 64 bits"));
  EXPECT_THAT(complaint("seconds", -0.5), HasSubstr("\"seconds\" is -0.5; allowed: a number"));
  EXPECT_THAT(complaint("test_loss", -1),
              HasSubstr("\"test_loss\" is -1; allowed: a number from 0 on"));
}

TEST(TrainerLine, SaysWhatIsWrongWithALine) {
  EXPECT_THAT(Complaint("Killed"), HasSubstr("not a JSON object: Killed"));
  EXPECT_THAT(Complaint("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(Complaint("{\"event\":\"epoch\""), HasSubstr("not a JSON object"));
  EXPECT_THAT(Complaint(R"({"job":"12"})"), HasSubstr("has no \"event\""));
  EXPECT_THAT(Complaint(R"({"event":"epoch","job":"13"})"),
              HasSubstr("is of job \"13\"; this trainer was given \"12\""));
  EXPECT_THAT(Complaint(R"({"event":"epoch","job":12})"), HasSubstr("allowed: a string"));
  EXPECT_THAT(Complaint(R"({"event":"epoch","job":"12","epoch":1.5})"),
              HasSubstr("\"epoch\" is 1.5; allowed: an integer"));
  EXPECT_THAT(Complaint(R"({"event":"epoch","job":"12","epoch":1,"train_loss":"low"})"),
              HasSubstr("allowed: a number"));
  EXPECT_THAT(Complaint(R"({"event":"epoch","job":"12","epoch":18446744073709551615})"),
              HasSubstr("an integer of 32 bits"));
  EXPECT_THAT(
      Complaint(
          R"({"event":"done","job":"12","wall_seconds":1,"weights":{"file":"w","sha256":"abc",)"
          R"("bytes":1}})"),
      HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(Complaint(R"({"event":"done","job":"12","wall_seconds":-5})"),
              HasSubstr("\"wall_seconds\" is -5; allowed: a number from 0 to 1e+09"));
  const auto weights = [](const std::string& file) {
    return absl::StrCat(R"({"event":"done","job":"12","wall_seconds":1,"weights":{"file":")", file,
                        R"(","bytes":1,"sha256":")", std::string(64, 'a'), "\"}}");
  };
  EXPECT_EQ(Complaint(weights("w/x")), "nothing");
  EXPECT_THAT(Complaint(weights("w/")),
              HasSubstr("\"file\" is \"w/\"; allowed: a file's name of 1"));
  EXPECT_THAT(Complaint(weights("w/a\\nb")), HasSubstr("allowed: a file's name of 1 to 256 bytes"));
  EXPECT_THAT(Complaint(absl::StrCat(R"({"event":"done","job":"12","wall_seconds":1,"weights":)"
                                     R"({"file":"w","sha256":")",
                                     std::string(64, 'a'), R"(","bytes":-1}})")),
              HasSubstr("\"bytes\" is -1; allowed: an integer from 0 on"));
  // The complaint becomes the error of the attempt, a Protobuf string.
  EXPECT_THAT(Complaint("{\"event\":\"\xff\",\"job\":\"12\"}"),
              HasSubstr("not a JSON object: {\"event\":\"?\",\"job\":\"12\"}"));
  const std::string most(119, 'x');
  EXPECT_THAT(Complaint(most + "é"), HasSubstr("not a JSON object: " + most + "…"));
}

}  // namespace
}  // namespace pelab::event
