#include "client/source/local.h"

#include <fstream>
#include <utility>

#include "client/source/pages.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/check/check.h"
#include "core/db/read/reader_pool.h"

namespace pelab::client {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

// Commands read UNAVAILABLE as "no coordinator", so an unreadable file gets another code.
absl::Status OfFile(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  return absl::InternalError(status.message());
}

class LocalSource final : public DataSource {
 public:
  explicit LocalSource(const std::string& path) : path_(path), readers_(path) {}

  // Whether the file can be read.
  absl::Status Check() { return OfFile(readers_.Take().status()); }

  absl::Status ReadJobs(
      const v1::JobFilter& filter,
      const std::function<absl::Status(v1::ListJobsResponse&)>& on_page) override {
    v1::ListJobsRequest request;
    *request.mutable_filter() = filter;
    request.set_specs_apart(true);
    return ForEachPage(&db::Reader::ListJobs, request, on_page);
  }
  absl::Status ReadCurves(const v1::JobFilter& filter,
                          const std::function<absl::Status(const CurvePage&)>& on_page) override {
    v1::ListCurvesRequest request;
    *request.mutable_filter() = filter;
    return ForEachPage(&db::Reader::ListCurves, request,
                       [&](const auto& page) { return on_page(page.rows()); });
  }
  absl::StatusOr<std::vector<v1::HeadAblationRow>> HeadAblations(
      const v1::JobFilter& filter) override {
    return AllPages<v1::HeadAblationRow>(filter, &db::Reader::ListHeadAblations);
  }
  absl::StatusOr<std::vector<v1::EpochsToRow>> EpochsTo(const v1::JobFilter& filter,
                                                        double test_accuracy) override {
    v1::ListEpochsToRequest request;
    request.set_test_accuracy(test_accuracy);
    return AllPages<v1::EpochsToRow>(filter, &db::Reader::ListEpochsTo, std::move(request));
  }
  absl::StatusOr<std::vector<v1::DepositRow>> Deposits(const v1::JobFilter& filter,
                                                       bool whole_models) override {
    v1::ListDepositsRequest request;
    request.set_whole_models(whole_models);
    return AllPages<v1::DepositRow>(filter, &db::Reader::ListDeposits, std::move(request));
  }
  absl::StatusOr<std::vector<v1::AnalysisRow>> Analyses(const v1::JobFilter& filter,
                                                        const std::string& name) override {
    v1::ListAnalysesRequest request;
    request.set_name(name);
    return AllPages<v1::AnalysisRow>(filter, &db::Reader::ListAnalyses, std::move(request));
  }
  absl::StatusOr<std::vector<v1::ArtifactRow>> Artifacts(const v1::JobFilter& filter) override {
    return AllPages<v1::ArtifactRow>(filter, &db::Reader::ListArtifacts);
  }
  absl::Status ReadArtifact(
      const std::string& sha256,
      const std::function<absl::Status(const std::string& piece)>& on_piece) override {
    const std::string file = db::ArtifactPath(path_, sha256);
    std::ifstream in(file, std::ios::binary);
    if (!in) return absl::NotFoundError(Concat("no stored file ", file));
    std::string piece(kPieceBytes, '\0');
    while (in) {
      in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      if (in.gcount() == 0) break;
      absl::Status status = on_piece(piece.substr(0, static_cast<std::size_t>(in.gcount())));
      if (!status.ok()) return status;
    }
    if (in.bad()) return absl::InternalError(Concat("cannot read ", file));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<v1::AttemptRow>> Attempts(const v1::JobFilter& filter) override {
    return AllPages<v1::AttemptRow>(filter, &db::Reader::ListAttempts);
  }
  absl::StatusOr<std::vector<v1::WorkerRow>> Workers() override {
    PELAB_ASSIGN_OR_RETURN(const v1::ListWorkersResponse response,
                           Ask([](db::Reader& reader) { return reader.ListWorkers(); }));
    std::vector<v1::WorkerRow> rows(response.workers().begin(), response.workers().end());
    // Nobody serves the file, so no worker can be connected, whatever the rows say.
    for (v1::WorkerRow& row : rows) row.set_state("offline");
    return rows;
  }
  absl::StatusOr<std::vector<v1::Sweep>> Sweeps() override {
    std::vector<v1::Sweep> all;
    v1::ListSweepsRequest request;
    PELAB_RETURN_IF_ERROR(
        ForEachPage(&db::Reader::ListSweeps, request, [&](v1::ListSweepsResponse& page) {
          for (auto& sweep : *page.mutable_sweeps()) all.push_back(std::move(sweep));
          return absl::OkStatus();
        }));
    return all;
  }
  absl::StatusOr<v1::Sweep> Sweep(const std::string& sweep) override {
    return Ask([&](db::Reader& reader) { return reader.GetSweep(sweep); });
  }
  absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string& job, int attempt) override {
    return Ask([&](db::Reader& reader) { return reader.ReadLog(job, attempt, 0); });
  }
  std::string Description() const override { return Concat(path_, " (nobody serves it)"); }

 private:
  // Calls `ask(reader) -> StatusOr` with a reader of its own.
  template <typename Question>
  auto Ask(Question ask) -> decltype(ask(std::declval<db::Reader&>())) {
    auto reader = readers_.Take();
    if (!reader.ok()) return OfFile(reader.status());
    auto answer = ask(**reader);
    if (!answer.ok()) return OfFile(answer.status());
    return answer;
  }

  // Passes every page of the list to `on_page`.
  template <typename Request, typename Response, typename OnPage>
  absl::Status ForEachPage(absl::StatusOr<Response> (db::Reader::*list)(const Request&),
                           Request& request, OnPage on_page) {
    request.mutable_page()->set_limit(db::kMaxPage);
    const auto fetch = [&](const std::string& after) {
      request.mutable_page()->set_after(after);
      return Ask([&](db::Reader& reader) { return (reader.*list)(request); });
    };
    return ReadPages(fetch, on_page);
  }

  // The rows of all pages together.
  template <typename Row, typename Request, typename Response>
  absl::StatusOr<std::vector<Row>> AllPages(
      const v1::JobFilter& filter, absl::StatusOr<Response> (db::Reader::*list)(const Request&),
      Request request = {}) {
    std::vector<Row> all;
    *request.mutable_filter() = filter;
    absl::Status status = ForEachPage(list, request, [&](Response& page) {
      for (auto& row : *page.mutable_rows()) all.push_back(std::move(row));
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return all;
  }

  const std::string path_;
  db::ReaderPool readers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DataSource>> OpenFile(const std::string& path) {
  auto source = std::make_unique<LocalSource>(path);
  PELAB_RETURN_IF_ERROR(source->Check());
  return source;
}

}  // namespace pelab::client
