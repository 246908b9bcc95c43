// Every method for every kind of caller, against a table written by hand.
#include "server/access/methods.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "tests/contract/rpc/identity_fixture.h"

namespace pelab {
namespace {

// The callers that each method accepts, a letter each: reader, submitter, operator, worker, sCaler.
const std::map<std::string, std::string>& WhoMay() {
  static const auto& table = *new std::map<std::string, std::string>{
      {"Sweeps/Preview", "rsoc"},
      {"Sweeps/ListSweeps", "rsoc"},
      {"Sweeps/GetSweep", "rsoc"},
      {"Sweeps/WatchSweep", "rsoc"},
      {"Sweeps/PutFile", "so"},
      {"Sweeps/Submit", "so"},
      {"Sweeps/Cancel", "so"},
      {"Sweeps/Pause", "so"},
      {"Sweeps/Resume", "so"},
      {"Sweeps/SetPriority", "so"},
      {"Sweeps/Rename", "so"},
      {"Sweeps/SetNote", "so"},
      {"Sweeps/Delete", "so"},
      {"Sweeps/Retry", "so"},
      {"Sweeps/Extend", "so"},
      {"Sweeps/Analyze", "so"},
      {"Results/ListJobs", "rsoc"},
      {"Results/ListCurves", "rsoc"},
      {"Results/ListEpochsTo", "rsoc"},
      {"Results/ListHeadAblations", "rsoc"},
      {"Results/ListDeposits", "rsoc"},
      {"Results/ListAnalyses", "rsoc"},
      {"Results/ListArtifacts", "rsoc"},
      {"Results/GetArtifact", "rsowc"},
      {"Results/ListAttempts", "rsoc"},
      {"Results/ListWorkers", "rsoc"},
      {"Results/ReadLog", "rsoc"},
      {"Fleet/Session", "w"},
      {"Fleet/PutArtifact", "w"},
      {"Fleet/DrainWorker", "o"},
      {"Fleet/Demand", "rsoc"},
      {"Maintenance/Backup", "o"},
      {"Transfer/CheckImport", "so"},
      {"Transfer/ImportJob", "o"},
      {"Transfer/ImportSweep", "o"},
      {"Admin/WhoAmI", "rsowc"},
      {"Admin/AddPrincipal", "o"},
      {"Admin/ListPrincipals", "o"},
      {"Admin/ChangePrincipal", "o"},
      {"Admin/RotateToken", "o"},
      {"Admin/ListAudit", "o"},
      {"Claims/RegisterSheet", "so"},
      {"Claims/Advance", "so"},
      {"Claims/ListSheets", "rsoc"},
      {"Claims/GetSheet", "rsoc"},
      {"Claims/ListSheetClaims", "rsoc"},
      {"Allocations/PutQueue", "o"},
      {"Allocations/RemoveQueue", "o"},
      {"Allocations/PauseQueue", "o"},
      {"Allocations/ResumeQueue", "o"},
      {"Allocations/ListQueues", "rsoc"},
      {"Allocations/ReportQueues", "oc"},
      {"Allocations/WorkerGone", "oc"},
  };
  return table;
}

// Methods of submitters that change one sweep.
const std::vector<std::string>& ChangesOfSweeps() {
  static const auto& methods = *new std::vector<std::string>{
      "Sweeps/Cancel",  "Sweeps/Pause", "Sweeps/Resume", "Sweeps/SetPriority", "Sweeps/Rename",
      "Sweeps/SetNote", "Sweeps/Retry", "Sweeps/Extend", "Sweeps/Analyze",     "Sweeps/Delete"};
  return methods;
}

// A request that the method would obey. The sweep is the first field of each.
std::string RequestOf(const std::string& method, const std::string& sweep) {
  if (method == "Sweeps/Rename") {
    v1::RenameRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    request.set_name("mine-too");
    return request.SerializeAsString();
  }
  if (method == "Sweeps/Analyze") {
    v1::AnalyzeRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    request.add_analyses()->set_name("head_ablation");
    request.mutable_analyses(0)->set_version(2);
    request.mutable_analyses(0)->set_parameters_json(
        R"({"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"})");
    return request.SerializeAsString();
  }
  v1::PauseRequest request;
  request.mutable_sweep()->set_sweep(sweep);
  return request.SerializeAsString();
}

class MethodsTest : public IdentityTest {
 protected:
  struct Caller {
    std::string name;
    char letter = ' ';  // of the table; ' ': nobody
    Channel channel;
  };

  void SetUp() override {
    IdentityTest::SetUp();
    BeginIdentity();
    callers_ = {{"nobody", ' ', With("")},
                {"a wrong token", ' ', With("a-token-that-nobody-gave")},
                {"expired", ' ', JoinForAMoment("expired")},
                {"disabled", ' ', Join("disabled", v1::ROLE_OPERATOR)},
                {"reader", 'r', Join("reader", v1::ROLE_READER)},
                {"owner", 's', Join("owner", v1::ROLE_SUBMITTER)},
                {"other", 's', Join("other", v1::ROLE_SUBMITTER)},
                {"operator", 'o', Join("boss", v1::ROLE_OPERATOR)},
                {"worker", 'w', Join("worker", v1::ROLE_WORKER)},
                {"scaler", 'c', Join("scaler", v1::ROLE_SCALER)}};
    ASSERT_TRUE(SetDisabled("disabled", true).ok());
    ASSERT_TRUE(AwaitRefusal([this] { return List(Of("expired").channel); },
                             absl::StatusCode::kUnauthenticated));
  }
  // Adds an operator that expires soon. A machine that is slow may ask for a time that is over when
  // the request comes, so it asks for longer and longer ones.
  Channel JoinForAMoment(const std::string& name) {
    v1::AddPrincipalRequest request = Request(name, v1::ROLE_OPERATOR);
    for (absl::Duration time = absl::Milliseconds(200); time < kPatience; time *= 2) {
      request.set_expires_at_ms(absl::ToUnixMillis(absl::Now() + time));
      const auto token = Add(root_, request);
      if (token.ok()) return With(*token);
    }
    ADD_FAILURE() << "no time was long enough";
    return With("");
  }
  const Caller& Of(const std::string& name) const {
    return *std::find_if(callers_.begin(), callers_.end(),
                         [&name](const Caller& caller) { return caller.name == name; });
  }

  std::vector<Caller> callers_;
};

TEST_F(MethodsTest, EveryMethodForEveryCaller) {
  for (const Caller& caller : callers_) {
    for (const auto& [method, who] : WhoMay()) {
      const absl::StatusCode code = Raw(caller.channel, "/pelab.v1." + method, "").code();
      const std::string where = caller.name + " calls " + method;
      if (caller.letter == ' ') {
        EXPECT_EQ(code, absl::StatusCode::kUnauthenticated) << where;
      } else if (who.find(caller.letter) == std::string::npos) {
        EXPECT_EQ(code, absl::StatusCode::kPermissionDenied) << where;
      } else {
        EXPECT_NE(code, absl::StatusCode::kUnauthenticated) << where;
        EXPECT_NE(code, absl::StatusCode::kPermissionDenied) << where;
        EXPECT_NE(code, absl::StatusCode::kUnimplemented) << where;
      }
    }
  }
}

// A method that is added has to be added here too.
TEST_F(MethodsTest, TheTableHasEveryMethod) {
  const auto methods = access::Methods::Build();
  ASSERT_TRUE(methods.ok()) << methods.status();
  std::set<std::string> known;
  std::set<std::string> expected;
  for (const auto& [path, method] : methods->all()) known.insert(method.name);
  for (const auto& [method, who] : WhoMay()) expected.insert(method);
  EXPECT_EQ(known, expected);
}

// A service that the coordinator does not know of would be open to everybody.
TEST_F(MethodsTest, EveryServiceOfTheProtocolIsInTheTable) {
  const auto methods = access::Methods::Build();
  ASSERT_TRUE(methods.ok()) << methods.status();
  std::set<std::string> known;
  for (const auto& [path, method] : methods->all()) {
    known.insert(method.name.substr(0, method.name.find('/')));
  }
  std::set<std::string> written;
  for (const auto& file :
       std::filesystem::directory_iterator(absl::StrCat(PELAB_SOURCE_DIR, "/proto/pelab/v1"))) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("service ")) written.insert(line.substr(8, line.find(' ', 8) - 8));
    }
  }
  EXPECT_GE(written.size(), 8u);
  EXPECT_EQ(known, written);
}

TEST_F(MethodsTest, SweepsAreChangedByTheirOwnersAndOperators) {
  v1::SubmitResponse sweep;
  ASSERT_TRUE(SubmitAs(Of("owner").channel, Document("mine"), &sweep).ok());
  for (const std::string& method : ChangesOfSweeps()) {
    const std::string path = "/pelab.v1." + method;
    const std::string bytes = RequestOf(method, absl::StrCat(sweep.sweep_id()));
    EXPECT_EQ(Raw(Of("reader").channel, path, bytes).code(), absl::StatusCode::kPermissionDenied)
        << method;
    const absl::Status other = Raw(Of("other").channel, path, bytes);
    EXPECT_EQ(other.code(), absl::StatusCode::kPermissionDenied) << method << ": " << other;
    EXPECT_NE(Raw(Of("owner").channel, path, bytes).code(), absl::StatusCode::kPermissionDenied)
        << method;
    EXPECT_NE(Raw(Of("operator").channel, path, bytes).code(), absl::StatusCode::kPermissionDenied)
        << method;
  }
}

// A job belongs to all sweeps that claim it: nobody stops what somebody else waits for.
TEST_F(MethodsTest, JobsOfTwoOwnersAreCancelledByNeither) {
  v1::SubmitResponse sweep;
  ASSERT_TRUE(SubmitAs(Of("owner").channel, Document("mine"), &sweep).ok());
  ASSERT_TRUE(SubmitAs(Of("other").channel, Document("yours")).ok());  // the same jobs
  v1::CancelRequest cancel;
  cancel.set_job("1");
  v1::CancelResponse cancelled;
  for (const std::string name : {"owner", "other"}) {
    EXPECT_EQ(
        Call<v1::Sweeps>(Of(name).channel, &v1::Sweeps::Stub::Cancel, cancel, cancelled).code(),
        absl::StatusCode::kPermissionDenied)
        << name;
  }
  v1::CancelRequest mine;
  mine.mutable_sweep()->set_sweep(absl::StrCat(sweep.sweep_id()));
  ASSERT_TRUE(
      Call<v1::Sweeps>(Of("owner").channel, &v1::Sweeps::Stub::Cancel, mine, cancelled).ok());
  EXPECT_EQ(cancelled.jobs_cancelled(), 0u) << "the other sweep still claims them";
  EXPECT_TRUE(
      Call<v1::Sweeps>(Of("other").channel, &v1::Sweeps::Stub::Cancel, cancel, cancelled).ok());
  EXPECT_EQ(cancelled.jobs_cancelled(), 1u);
}

TEST_F(MethodsTest, HealthIsOpenAndReflectionIsForOperators) {
  EXPECT_TRUE(Raw(Of("nobody").channel, "/grpc.health.v1.Health/Check", "").ok());
  const std::string reflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  EXPECT_EQ(Raw(Of("nobody").channel, reflection, "").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Raw(Of("owner").channel, reflection, "").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(Raw(Of("operator").channel, reflection, "").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Raw(Of("operator").channel, "/pelab.v1.Sweeps/NoSuchMethod", "").code(),
            absl::StatusCode::kUnimplemented);
}

// --health: for probes that have no TLS, and for nothing else.
TEST_F(MethodsTest, TheAddressOfHealthChecksAnswersNothingElse) {
  options_.health = *rpc::ParseAddress("127.0.0.1:0", rpc::PortZero::kAllowed);
  Restart();
  const auto channel =
      grpc::CreateChannel(coordinator_->health_address(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(Raw(channel, "/grpc.health.v1.Health/Check", "").ok());
  for (const auto& [method, who] : WhoMay()) {
    EXPECT_EQ(Raw(channel, "/pelab.v1." + method, "").code(), absl::StatusCode::kUnimplemented)
        << method;
  }
  EXPECT_EQ(
      Raw(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "").code(),
      absl::StatusCode::kUnimplemented);
  CoordinatorOptions second = options_;
  second.database = directory_ + "/other.db";
  second.listen = {*rpc::ParseAddress("unix:" + directory_ + "/s2")};
  second.health = *rpc::ParseAddress(coordinator_->health_address());
  EXPECT_THAT(std::string(Coordinator::Start(second).status().message()),
              testing::HasSubstr("another program listens there"));
}

}  // namespace
}  // namespace pelab
