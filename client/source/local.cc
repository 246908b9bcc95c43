#include "client/source/local.h"

#include <fstream>
#include <utility>

#include "client/source/pages.h"
#include "core/views/maintenance.h"
#include "core/views/reader.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

// UNAVAILABLE means "no coordinator" to commands; a file that cannot be read is something else.
absl::Status OfFile(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  return absl::InternalError(status.message());
}

// Every page of a list: `list(page) -> StatusOr<Response>`, `take(response)` as they come.
template <typename List, typename Take>
absl::Status ForEachPage(List list, Take take) {
  v1::Page page;
  page.set_limit(views::kMaxPage);
  for (;;) {
    auto response = list(page);
    if (!response.ok()) return OfFile(response.status());
    page.set_after(response->next());
    take(*std::move(response));
    if (page.after().empty()) return absl::OkStatus();
  }
}

// The rows of all of them together: `rows(response) -> repeated field`.
template <typename Row, typename List, typename Rows>
absl::StatusOr<std::vector<Row>> AllPages(List list, Rows rows) {
  std::vector<Row> all;
  absl::Status status = ForEachPage(list, [&](auto response) {
    for (auto& row : *rows(response)) all.push_back(std::move(row));
  });
  if (!status.ok()) return status;
  return all;
}

class LocalSource final : public DataSource {
 public:
  LocalSource(std::string path, std::unique_ptr<views::Reader> reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  absl::Status ReadJobs(
      const v1::JobFilter& filter,
      const std::function<absl::Status(v1::ListJobsResponse&)>& on_page) override {
    v1::ListJobsRequest request;
    *request.mutable_filter() = filter;
    request.set_specs_apart(true);
    request.mutable_page()->set_limit(views::kMaxPage);
    const auto fetch = [&](const std::string& after) {
      request.mutable_page()->set_after(after);
      return reader_->ListJobs(request);
    };
    return OfFile(ReadPages(fetch, on_page));
  }
  absl::Status ReadCurves(const v1::JobFilter& filter,
                          const std::function<absl::Status(const CurvePage&)>& on_page) override {
    v1::ListCurvesRequest request;
    *request.mutable_filter() = filter;
    request.mutable_page()->set_limit(views::kMaxPage);
    const auto fetch = [&](const std::string& after) {
      request.mutable_page()->set_after(after);
      return reader_->ListCurves(request);
    };
    return OfFile(ReadPages(fetch, [&](const auto& page) { return on_page(page.rows()); }));
  }
  absl::StatusOr<std::vector<v1::HeadAblationRow>> HeadAblations(
      const v1::JobFilter& filter) override {
    v1::ListHeadAblationsRequest request;
    *request.mutable_filter() = filter;
    return AllPages<v1::HeadAblationRow>(
        [&](const v1::Page& page) {
          *request.mutable_page() = page;
          return reader_->ListHeadAblations(request);
        },
        [](auto& response) { return response.mutable_rows(); });
  }
  absl::StatusOr<std::vector<v1::EpochsToRow>> EpochsTo(const v1::JobFilter& filter,
                                                        double test_accuracy) override {
    v1::ListEpochsToRequest request;
    *request.mutable_filter() = filter;
    request.set_test_accuracy(test_accuracy);
    return AllPages<v1::EpochsToRow>(
        [&](const v1::Page& page) {
          *request.mutable_page() = page;
          return reader_->ListEpochsTo(request);
        },
        [](auto& response) { return response.mutable_rows(); });
  }
  absl::StatusOr<std::vector<v1::DepositRow>> Deposits(const v1::JobFilter& filter,
                                                       bool whole_models) override {
    v1::ListDepositsRequest request;
    *request.mutable_filter() = filter;
    request.set_whole_models(whole_models);
    return AllPages<v1::DepositRow>(
        [&](const v1::Page& page) {
          *request.mutable_page() = page;
          return reader_->ListDeposits(request);
        },
        [](auto& response) { return response.mutable_rows(); });
  }
  absl::StatusOr<std::vector<v1::AnalysisRow>> Analyses(const v1::JobFilter& filter,
                                                        const std::string& name) override {
    v1::ListAnalysesRequest request;
    *request.mutable_filter() = filter;
    request.set_name(name);
    return AllPages<v1::AnalysisRow>(
        [&](const v1::Page& page) {
          *request.mutable_page() = page;
          return reader_->ListAnalyses(request);
        },
        [](auto& response) { return response.mutable_rows(); });
  }
  absl::StatusOr<std::vector<v1::ArtifactRow>> Artifacts(const v1::JobFilter& filter) override {
    v1::ListArtifactsRequest request;
    *request.mutable_filter() = filter;
    return AllPages<v1::ArtifactRow>(
        [&](const v1::Page& page) {
          *request.mutable_page() = page;
          return reader_->ListArtifacts(request);
        },
        [](auto& response) { return response.mutable_rows(); });
  }
  absl::Status ReadArtifact(
      const std::string& sha256,
      const std::function<absl::Status(const std::string& piece)>& on_piece) override {
    const std::string file = views::ArtifactPath(path_, sha256);
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
    v1::ListAttemptsRequest request;
    *request.mutable_filter() = filter;
    auto response = reader_->ListAttempts(request);
    if (!response.ok()) return OfFile(response.status());
    return std::vector<v1::AttemptRow>(response->attempts().begin(), response->attempts().end());
  }
  absl::StatusOr<std::vector<v1::WorkerRow>> Workers() override {
    auto response = reader_->ListWorkers();
    if (!response.ok()) return OfFile(response.status());
    std::vector<v1::WorkerRow> rows(response->workers().begin(), response->workers().end());
    // Nobody serves the file: whatever it says, nobody is connected.
    for (v1::WorkerRow& row : rows) row.set_state("offline");
    return rows;
  }
  absl::StatusOr<std::vector<v1::Sweep>> Sweeps() override {
    v1::ListSweepsRequest request;
    return AllPages<v1::Sweep>(
        [&](const v1::Page& page) {
          *request.mutable_page() = page;
          return reader_->ListSweeps(request);
        },
        [](auto& response) { return response.mutable_sweeps(); });
  }
  absl::StatusOr<v1::Sweep> Sweep(const std::string& sweep) override {
    auto found = reader_->GetSweep(sweep);
    if (!found.ok()) return OfFile(found.status());
    return found;
  }
  absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string& job, int attempt) override {
    auto parts = reader_->ReadLog(job, attempt, 0);
    if (!parts.ok()) return OfFile(parts.status());
    return parts;
  }
  std::string Description() const override { return Concat(path_, " (nobody serves it)"); }

 private:
  std::string path_;
  std::unique_ptr<views::Reader> reader_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DataSource>> OpenFile(const std::string& path) {
  auto reader = views::Reader::Open(path);
  if (!reader.ok()) return OfFile(reader.status());
  return std::make_unique<LocalSource>(path, *std::move(reader));
}

}  // namespace pelab::client
