// The JSON API over a real socket: the shape and the values of each answer, errors, and refusals.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include "core/results/rows.h"
#include "server/http/http_server.h"
#include "tests/contract/http/http_fixture.h"

namespace pelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

std::vector<std::string> Names(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}
std::vector<std::string> Without(std::vector<std::string> names, const std::string& name) {
  std::erase(names, name);
  return names;
}

// Two seeds of two encodings on two slots. The first job is done; the second has one epoch of
// three.
class ApiTest : public HttpTest {
 protected:
  void SetUp() override {
    HttpTest::SetUp();
    Submit(Document("api"), "t");
    worker_ = std::make_unique<FakeWorker>(channel_, "worker-1", 2);
    done_ = std::make_unique<Script>(worker_->AwaitAssignment());
    running_ = std::make_unique<Script>(worker_->AwaitAssignment());
    worker_->Send(done_->Whole(3));
    worker_->AwaitAck(done_->assignment().attempt_id(), done_->sequence());
    worker_->Send({running_->Started(0, 3), running_->Epoch(0)});
    worker_->AwaitAck(running_->assignment().attempt_id(), running_->sequence());
    worker_->Log(running_->assignment(), 0, "\x1b[31mred <b>&amp;\n");
    // The slot of the job that is done gets the next one.
    AwaitSweep("api", [](const v1::Sweep& sweep) {
      return sweep.epochs_done() == 4 && sweep.jobs().assigned() == 1;
    });
  }
  std::string JobOf(const Script& script) { return std::to_string(script.assignment().job_id()); }

  std::unique_ptr<FakeWorker> worker_;
  std::unique_ptr<Script> done_;
  std::unique_ptr<Script> running_;
};

TEST_F(ApiTest, EveryAnswerHasItsShape) {
  const std::string job = JobOf(*done_);
  EXPECT_THAT(Names(Get("/")), ElementsAre("pelab", "api", "paths"));
  const Json sweeps = Get("/sweeps");
  EXPECT_THAT(Names(sweeps), ElementsAre("sweeps", "next"));
  EXPECT_THAT(
      Names(sweeps["sweeps"][0]["progress"]),
      ElementsAre("jobs", "ended", "fraction", "epochs_left", "time_left_seconds", "based_on"));
  for (const std::string& column : results::ColumnsOf<v1::Sweep>()) {
    EXPECT_TRUE(sweeps["sweeps"][0].contains(column)) << column;
  }
  const Json sweep = Get("/sweeps/api");
  EXPECT_THAT(sweep["document"].get<std::string>(), HasSubstr("name: api"));
  EXPECT_EQ(Get("/sweeps/" + sweep["sweep_id"].dump())["name"], "api");
  const Json jobs = Get("/sweeps/api/jobs");
  EXPECT_THAT(Names(jobs), ElementsAre("jobs", "next"));
  EXPECT_THAT(Names(jobs["jobs"][0]),
              UnorderedElementsAreArray(Without(results::ColumnsOf<v1::JobRow>(), "spec")));
  EXPECT_THAT(Names(Get("/sweeps/api/cells")),
              ElementsAre("metric", "columns", "mixed", "complete", "cells"));
  const Json curves = Get("/sweeps/api/curves");
  EXPECT_THAT(Names(curves), ElementsAre("metric", "columns", "cells"));
  EXPECT_THAT(Names(curves["cells"][0]["points"]), ElementsAre("epoch", "mean", "half_width"));
  EXPECT_THAT(Names(Get("/sweeps/api/ablations")), ElementsAre("metric", "columns", "ablations"));
  EXPECT_THAT(Names(Get("/sweeps/api/deposits")), ElementsAre("columns", "deposits"));
  EXPECT_TRUE(Get("/sweeps/api/claims")["sheets"].empty());
  const Json one = Get("/jobs/" + job);
  EXPECT_THAT(Names(one), ElementsAre("job", "attempts", "sweep", "varying"));
  EXPECT_THAT(Names(one["job"]), UnorderedElementsAreArray(results::ColumnsOf<v1::JobRow>()));
  EXPECT_EQ(one["job"]["spec"]["seed"], one["job"]["seed"]);
  const Json curve = Get("/jobs/" + job + "/curve");
  EXPECT_THAT(Names(curve), ElementsAre("curve", "next"));
  EXPECT_THAT(Names(curve["curve"][0]),
              UnorderedElementsAreArray(results::ColumnsOf<v1::CurveRow>()));
  EXPECT_THAT(Names(Get("/jobs/" + job + "/ablations")["ablations"][0]),
              UnorderedElementsAreArray(results::ColumnsOf<v1::HeadAblationRow>()));
  EXPECT_THAT(Names(Get("/jobs/" + job + "/deposits")["deposits"][0]),
              UnorderedElementsAreArray(results::ColumnsOf<v1::DepositRow>()));
  EXPECT_THAT(Names(Get("/jobs/" + job + "/analyses")["analyses"][0]),
              UnorderedElementsAreArray(results::ColumnsOf<v1::AnalysisRow>()));
  const Json workers = Get("/workers");
  EXPECT_THAT(Names(workers), ElementsAre("now_ms", "workers", "next"));
  for (const std::string& column : results::ColumnsOf<v1::WorkerRow>()) {
    EXPECT_TRUE(workers["workers"][0].contains(column)) << column;
  }
}

TEST_F(ApiTest, AJobSaysInWhatItDiffersFromTheOthersOfItsSweep) {
  const std::string job = JobOf(*done_);
  EXPECT_EQ(Get("/jobs/" + job)["varying"], Json::object()) << "in nothing but pe and seed";
  Submit(Document("axes") + "axes: {train.lr: [0.0001, 0.0003], model.dropout: [0.0, 0.25]}\n",
         "u");
  AwaitSweep("axes", [](const v1::Sweep& sweep) { return sweep.cells() == 16; });
  const Json jobs = Get("/sweeps/axes/jobs")["jobs"];
  for (const Json& row : jobs) {
    const Json one = Get("/jobs/" + row["job_id"].dump() + "?sweep=axes");
    const Json& spec = one["job"]["spec"];
    EXPECT_EQ(one["sweep"], (Json{{"sweep_id", 2}, {"name", "axes"}}));
    EXPECT_EQ(one["varying"].size(), 2U);
    EXPECT_EQ(one["varying"]["train.lr"], spec["train"]["lr"].dump());
    EXPECT_EQ(std::stod(one["varying"]["model.dropout"].get<std::string>()),
              spec["model"]["dropout"].get<double>());
  }
  // Without a sweep's name the newest sweep with this job is shown.
  EXPECT_EQ(Get("/jobs/" + jobs[0]["job_id"].dump())["sweep"]["name"], "axes");
  EXPECT_EQ(Get("/jobs/" + job)["sweep"]["name"], "api");
}

TEST_F(ApiTest, ValuesAreTheStoredOnes) {
  const v1::ListJobsResponse rows = Jobs("api");
  const Json jobs = Get("/sweeps/api/jobs")["jobs"];
  ASSERT_EQ(jobs.size(), static_cast<std::size_t>(rows.jobs_size()));
  for (int i = 0; i < rows.jobs_size(); ++i) {
    Json row = results::ToJson(rows.jobs(i), rows.jobs(i).spec_json());
    row.erase("spec");
    EXPECT_EQ(jobs[i], row);
  }
  const Json curve = Get("/jobs/" + JobOf(*done_) + "/curve")["curve"];
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_EQ(curve[1]["train_loss"], 1.0 / 4);
  EXPECT_EQ(curve[2]["test_loss"], 1.0 / 9);
  const Json sweep = Get("/sweeps/api");
  EXPECT_EQ(sweep["succeeded"], 1);
  EXPECT_EQ(sweep["running"], 1);
  EXPECT_EQ(sweep["progress"]["epochs_left"], 8);
  EXPECT_GT(sweep["progress"]["time_left_seconds"], 0);
  EXPECT_THAT(Get("/sweeps/api/limits")["text"].get<std::string>(),
              HasSubstr("without doing the task: distance clean "));
  EXPECT_EQ(Get("/sweeps/api/limits?pe=absolute")["text"], "");
  const Json cells = Get("/sweeps/api/cells")["cells"];
  EXPECT_EQ(cells[0]["n"].get<int>() + cells[0]["missing"].get<int>(), 2);
  EXPECT_DOUBLE_EQ(cells[0]["mean"], 42.0 / 97);
  const Json mean = Get("/sweeps/api/curves?metric=test_loss&pe=nope")["cells"][0];
  EXPECT_DOUBLE_EQ(mean["points"]["mean"][0], 1.0 / 7);
  const Json drops = Get("/sweeps/api/ablations")["ablations"][0];
  EXPECT_EQ(drops["layers"], 2);
  EXPECT_NEAR(drops["drops"][0][0], 32.0 / 97, 1e-12);
}

// A worker's description of itself must not end the coordinator, nor a client that asks for the
// worker's job.
TEST_F(ApiTest, WhatIsNestedIsNotShown) {
  const int deep = 1'000'000;
  const std::string nested = "{\"a\":" + std::string(deep, '[') + std::string(deep, ']') + "}";
  Script next(worker_->AwaitAssignment());
  v1::Event started = next.Started(0, 3);
  started.mutable_started()->set_environment_json(nested);
  worker_->Send({started});
  EXPECT_FALSE(worker_->AwaitAck(next.assignment().attempt_id(), 1).superseded());
  const Json asked = Get("/jobs/" + JobOf(next));
  EXPECT_TRUE(asked["attempts"][0]["environment"].is_null());

  // Stored by an earlier version, which accepted it.
  SQLite::Database db(options_.database, SQLite::OPEN_READWRITE);
  db.setBusyTimeout(10'000);
  SQLite::Statement store(db, "UPDATE attempts SET environment_json = ? WHERE attempt_id = ?");
  store.bind(1, nested);
  store.bind(2, next.assignment().attempt_id());
  store.exec();
  EXPECT_TRUE(Get("/jobs/" + JobOf(next))["attempts"][0]["environment"].is_null());
}

TEST_F(ApiTest, WorkersHaveLeasesAndUtilization) {
  const Json answer = Get("/workers");
  const Json& worker = answer["workers"][0];
  EXPECT_EQ(worker["worker_id"], "worker-1");
  EXPECT_EQ(worker["connected"], true);
  EXPECT_EQ(worker["slots"], 2);
  ASSERT_GE(worker["leases"].size(), 1U);
  bool found = false;
  for (const Json& lease : worker["leases"]) {
    found |= lease["job_id"].dump() == JobOf(*running_);
    EXPECT_LE(lease["renewed_at_ms"].get<std::int64_t>(), answer["now_ms"].get<std::int64_t>());
    EXPECT_GT(lease["ends_at_ms"].get<std::int64_t>(), answer["now_ms"].get<std::int64_t>());
  }
  EXPECT_TRUE(found);
  EXPECT_DOUBLE_EQ(worker["utilisation"], worker["busy_slots"].get<double>() / 2);
}

TEST_F(ApiTest, GpusAreAsBusyAsTheLastHeartbeatSaid) {
  EXPECT_EQ(Get("/workers")["workers"][0]["loads"], Json::array());
  v1::DeviceLoad load;
  load.set_device("cuda:0");
  load.set_busy_percent(87);
  load.set_memory_used(std::uint64_t{61} << 30);
  load.set_memory_total(std::uint64_t{140} << 30);
  v1::DeviceLoad slice;
  slice.set_device("cuda:1");
  v1::HeldAttempt held;
  held.set_attempt_id(running_->assignment().attempt_id());
  held.set_token(running_->assignment().token());
  worker_->Beat({held}, {load, slice});
  Json loads = Json::array();
  const absl::Time deadline = absl::Now() + kPatience;
  while (loads.empty() && absl::Now() < deadline) {
    loads = Get("/workers")["workers"][0]["loads"];
  }
  EXPECT_EQ(loads, Json::parse(R"([{"device":"cuda:0","busy_percent":87,
      "memory_used_bytes":65498251264,"memory_total_bytes":150323855360},
      {"device":"cuda:1","busy_percent":null,"memory_used_bytes":0,"memory_total_bytes":0}])"));
}

TEST_F(ApiTest, LogsAreTextAndGoOn) {
  const std::string path = "/jobs/" + JobOf(*running_) + "/log";
  const absl::Time deadline = absl::Now() + kPatience;
  Json log = Get(path);
  while (log["parts"].empty() && absl::Now() < deadline) log = Get(path);
  EXPECT_EQ(log["parts"][0]["text"], "\x1b[31mred <b>&amp;\n");
  EXPECT_EQ(log["next_offset"], 18);
  EXPECT_TRUE(Get(path + "?offset=18")["parts"].empty());
  EXPECT_EQ(Get(path + "?offset=5")["parts"][0]["text"], "red <b>&amp;\n");
  EXPECT_EQ(Ask("/api/v1" + path + "?attempt=9").status, 404);
}

TEST_F(ApiTest, PagesGiveEachRowOnce) {
  std::vector<std::int64_t> ids;
  std::string after;
  do {
    const Json page = Get("/sweeps/api/jobs?limit=1" + (after.empty() ? "" : "&after=" + after));
    ASSERT_EQ(page["jobs"].size(), 1U);
    ids.push_back(page["jobs"][0]["job_id"]);
    after = page["next"].is_null() ? "" : page["next"].get<std::string>();
  } while (!after.empty() && ids.size() < 10);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Get("/sweeps/api/jobs?state=succeeded")["jobs"].size(), 1U);
  EXPECT_EQ(Get("/sweeps/api/jobs?pe=rope&seed=1")["jobs"].size(), 1U);
  EXPECT_EQ(Get("/sweeps/api/jobs?where=pe%3Dnope%20or%20seed%3D1")["jobs"].size(), 3U);
  EXPECT_EQ(Get("/sweeps/api/jobs?pe=rope&where=pe%3Dnope%20or%20seed%3D1")["jobs"].size(), 1U);
  EXPECT_EQ(Get("/sweeps/api/jobs?where=")["jobs"].size(), 4U);
}

TEST_F(ApiTest, AnEmptyAnswerNotesTheValueThatNoJobHas) {
  const auto note = [this](const std::string& address) {
    return Get("/sweeps/api/" + address).value("note", "");
  };
  const std::string rop =
      "no job of the sweep has pe = rop; did you mean rope? "
      "there: nope, rope";
  for (const std::string list : {"jobs", "cells", "curves", "ablations", "deposits"}) {
    EXPECT_EQ(note(list + "?pe=rop"), rop) << list;
    EXPECT_EQ(note(list + "?where=pe%3Drop"), rop) << list;
    EXPECT_EQ(note(list + "?pe=rop&job=1&state=failed"), rop) << list;
    EXPECT_EQ(note(list + "?pe=rop&seed=7"),
              rop + "; no job of the sweep has seed = 7; there: 0, 1")
        << list;
    for (const char* query : {"", "?pe=rope", "?state=cancelled", "?pe=rope&where=pe%3Dnope",
                              "?where=pe%20in%20(rope,rop)"}) {
      EXPECT_FALSE(Get("/sweeps/api/" + list + query).contains("note")) << list << query;
    }
  }
  EXPECT_THAT(note("cells?protocol=claen"), HasSubstr("protocol = claen; did you mean clean?"));
  const std::string next = Get("/sweeps/api/jobs?limit=1")["next"];
  EXPECT_EQ(note("jobs?pe=rop&after=" + next), "") << "a later page";
}

TEST_F(ApiTest, LongConditionsAreAnsweredOrRefused) {
  const auto repeated = [](const std::string& first, const std::string& more, int count) {
    std::string text = first;
    for (int i = 1; i < count; ++i) text += more;
    return "/sweeps/api/jobs?where=" + text;
  };
  // SQLite's parser gave up at 88 terms that were joined one by one.
  for (const int terms : {88, 300}) {
    EXPECT_EQ(Get(repeated("seed%3D1", "%20or%20seed%3D1", terms))["jobs"].size(), 2U) << terms;
  }
  EXPECT_EQ(Get(repeated("seed%20in%20(1", ",1", 1000) + ")")["jobs"].size(), 2U);
  const HttpAnswer members = Ask("/api/v1" + repeated("seed%20in%20(1", ",1", 1001) + ")");
  EXPECT_EQ(members.status, 400);
  EXPECT_THAT(members.json().value("error", ""), HasSubstr("at most 1000"));
  EXPECT_EQ(Ask("/api/v1" + repeated("seed%3D1", "%20or%20seed%3D1", 900)).status, 414);
}

TEST_F(ApiTest, ErrorsAreSentences) {
  const auto expect = [&](const std::string& path, int status, const std::string& sentence) {
    const HttpAnswer answer = Ask(path);
    EXPECT_EQ(answer.status, status) << path;
    EXPECT_EQ(answer.Header("Content-Type"), "application/json");
    EXPECT_THAT(answer.json().value("error", ""), HasSubstr(sentence)) << path;
  };
  expect("/api/v1/sweeps/none", 404, "no sweep \"none\"");
  expect("/api/v1/sweeps/none/events", 404, "no sweep \"none\"");
  expect("/api/v1/jobs/99", 404, "no job 99");
  expect("/api/v1/jobs/zz", 400, "\"zz\" names no job");
  expect("/api/v1/nothing", 404, "/api/v1/ lists");
  expect("/api/v2/sweeps", 404, "there is no page");
  expect("/nothing", 404, "there is no page /nothing");
  expect("/assets/../options.cc", 404, "there is no page");
  expect("/api/v1/sweeps?limit=0", 400, "from 1 to 1000");
  expect("/api/v1/sweeps?after=x", 400, "page position");
  expect("/api/v1/sweeps/api/jobs?state=done", 400, "unknown state \"done\"");
  expect("/api/v1/sweeps/api/jobs?pe=rope&where=seed%3D1%20and", 400,
         "where: condition, column 11");
  expect("/api/v1/sweeps/api/jobs?where=seed%3D1%29%20or%20%28seed%3D0", 400, "column 7");
  expect("/api/v1/sweeps/api/cells?metric=speed", 400, "speed");
  expect("/api/v1/sweeps/api/curves?metric=speed", 400, "test_accuracy");
  expect("/api/v1/sweeps/api/cells?metric=gini", 400, "metric: gini is no number of a job's row");
  expect("/api/v1/sweeps/api/cells?group_by=speed", 400, "group_by: unknown field");
  for (const std::string seed : {"first", "-1", "1.5", "9007199254740992"}) {
    expect("/api/v1/sweeps/api/jobs?seed=" + seed, 400,
           "seed=\"" + seed + "\" is not a whole number from 0 to 9007199254740991");
  }
  expect("/api/v1/events?since=3", 400, "unknown parameter");
  expect("/" + std::string(7000, 'a'), 404, "there is no page");
  expect("/sweeps%0A/%00", 404, "there is no page");
}

TEST_F(ApiTest, OnlyReads) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    const HttpAnswer answer = Ask("/api/v1/sweeps", {}, method);
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.Header("Allow"), "GET, HEAD");
  }
  const HttpAnswer whole = Ask("/api/v1/workers");
  const HttpAnswer head = Ask("/api/v1/sweeps", {}, "HEAD");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_GT(std::stoi(head.Header("Content-Length")), 100);
  EXPECT_EQ(Ask("/api/v1/events", {}, "HEAD").status, 200);
}

TEST_F(ApiTest, OtherSitesAreRefused) {
  EXPECT_EQ(Ask("/api/v1/sweeps", {{"Host", "evil.example"}}).status, 421);
  EXPECT_EQ(Ask("/", {{"Host", "evil.example:7480"}}).status, 421);
  EXPECT_EQ(Ask("/", {{"Host", "localhost:9999"}}).status, 200);  // as through a tunnel
  EXPECT_EQ(Ask("/", {{"Range", "bytes=0-1,0-1,0-1"}}).status, 416);
  for (const char* path : {"/", "/api/v1/sweeps", "/nothing", "/api/v1/nothing"}) {
    const HttpAnswer answer = Ask(path);
    EXPECT_THAT(answer.Header("Content-Security-Policy"), HasSubstr("default-src 'self'"));
    EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer.Header("X-Frame-Options"), "DENY");
    EXPECT_EQ(answer.Header("Access-Control-Allow-Origin"), "");
  }
}

TEST_F(ApiTest, PagesAreKeptByTheirTags) {
  for (const char* path : {"/", "/sweeps/1", "/jobs/1", "/workers", "/assets/plotly.js",
                           "/assets/dashboard.js", "/assets/base.css"}) {
    const HttpAnswer first = Ask(path);
    EXPECT_EQ(first.status, 200) << path;
    const std::string tag = first.Header("ETag");
    EXPECT_GT(tag.size(), 10U);
    const HttpAnswer again = Ask(path, {{"If-None-Match", tag}});
    EXPECT_EQ(again.status, 304);
    EXPECT_EQ(again.body, "");
    const HttpAnswer packed = Ask(path, {{"Accept-Encoding", "gzip"}});
    EXPECT_EQ(packed.Header("Content-Encoding"), "gzip");
    EXPECT_EQ(packed.body, first.body) << "what the client unpacks";
  }
  EXPECT_EQ(
      Ask("/api/v1/sweeps/api/jobs", {{"Accept-Encoding", "br, gzip"}}).Header("Content-Encoding"),
      "gzip");
}

// Twenty jobs and no worker; then no job that may run, and a worker with three slots.
TEST_F(HttpTest, DemandIsWhatWaitsAndWhatIsFree) {
  const auto demand = [this](const std::string& query) {
    const Json answer = Get("/demand" + query);
    EXPECT_THAT(Names(answer), ElementsAre("waiting_jobs", "free_slots", "slots_wanted"));
    return answer.dump();
  };
  EXPECT_EQ(demand(""), R"({"waiting_jobs":0,"free_slots":0,"slots_wanted":0})");
  Submit(Document("demand", "0..9"), "t");
  AwaitSweep("demand", [](const v1::Sweep& sweep) { return sweep.jobs().queued() == 20; });
  const std::string twenty = R"({"waiting_jobs":20,"free_slots":0,"slots_wanted":20})";
  EXPECT_EQ(demand("?device=cpu"), twenty);
  EXPECT_EQ(demand("?device=gpu&memory_bytes=8589934592"), twenty);
  EXPECT_EQ(demand("?pack=8"), R"({"waiting_jobs":20,"free_slots":0,"slots_wanted":3})");
  v1::PauseRequest pause;
  pause.mutable_sweep()->set_sweep("demand");
  v1::SweepControl paused;
  ASSERT_TRUE(sweeps_->Pause(Context().get(), pause, &paused).ok());
  const FakeWorker worker(channel_, "worker-1", 3);
  const absl::Time deadline = absl::Now() + kPatience;
  while (Get("/demand?device=cpu")["free_slots"] != 3 && absl::Now() < deadline) {
  }
  EXPECT_EQ(demand("?device=cpu"), R"({"waiting_jobs":0,"free_slots":3,"slots_wanted":0})");
  EXPECT_EQ(demand("?device=gpu"), R"({"waiting_jobs":0,"free_slots":0,"slots_wanted":0})");
}

TEST_F(HttpTest, DemandOfUnknownSlotsIsRefused) {
  for (const auto& [query, sentence] :
       std::map<std::string, std::string>{{"device=tpu", "tpu"},
                                          {"pack=0", "from 1 to 64"},
                                          {"memory_bytes=8GiB", "8GiB"},
                                          {"kind=gpu", "unknown parameter"}}) {
    const HttpAnswer answer = Ask("/api/v1/demand?" + query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_THAT(answer.json().value("error", ""), HasSubstr(sentence)) << query;
  }
}

TEST(HttpAddressTest, OthersMayOnlyLookWhereTheyAreMeantTo) {
  const auto check = [](const std::string& address, bool insecure) {
    return http::CheckHttpAddress(*rpc::ParseAddress(address), insecure);
  };
  EXPECT_TRUE(check("127.0.0.1:7480", false).ok());
  EXPECT_TRUE(check("[::1]:7480", false).ok());
  EXPECT_TRUE(check("0.0.0.0:7480", true).ok());
  EXPECT_THAT(std::string(check("0.0.0.0:7480", false).message()), HasSubstr("--http-insecure"));
  EXPECT_THAT(std::string(check("unix:/tmp/x", true).message()), HasSubstr("HOST:PORT"));
}

TEST_F(HttpTest, AnAddressThatIsTakenIsSaid) {
  options_.database = directory_ + "/other.db";
  options_.listen = {*rpc::ParseAddress("unix:" + directory_ + "/s2")};
  options_.http->port = port();
  const auto second = Coordinator::Start(options_);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another program listens there"));
}

}  // namespace
}  // namespace pelab
