#include "client/source/data_source.h"

#include <iterator>
#include <utility>

#include "client/source/pages.h"
#include "core/base/status.h"

namespace pelab::client {
namespace {

template <typename Rows, typename Row>
void MoveTo(Rows& rows, std::vector<Row>& all) {
  all.insert(all.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

}  // namespace

template <typename Response, typename Question>
absl::StatusOr<Response> DataSource::Ask(const Question& ask) {
  Response response;
  PELAB_RETURN_IF_ERROR(Use([&](db::RowReader& reader) {
    absl::StatusOr<Response> answer = ask(reader);
    if (!answer.ok()) return answer.status();
    response = *std::move(answer);
    return absl::OkStatus();
  }));
  return response;
}

template <typename Request, typename Response, typename OnPage>
absl::Status DataSource::ForEachPage(List<Request, Response> list, Request request, int rows,
                                     const OnPage& on_page) {
  request.mutable_page()->set_limit(rows);
  const auto fetch = [&](const std::string& after) {
    request.mutable_page()->set_after(after);
    return Ask<Response>([&](db::RowReader& reader) { return (reader.*list)(request); });
  };
  return ReadPages(fetch, on_page);
}

template <typename Row, typename Request, typename Response>
absl::StatusOr<std::vector<Row>> DataSource::AllRows(List<Request, Response> list,
                                                     const v1::JobFilter& filter, Request request) {
  std::vector<Row> all;
  *request.mutable_filter() = filter;
  PELAB_RETURN_IF_ERROR(ForEachPage(list, std::move(request), PageRows(), [&](Response& page) {
    MoveTo(*page.mutable_rows(), all);
    return absl::OkStatus();
  }));
  return all;
}

absl::StatusOr<results::JobList> DataSource::Jobs(const v1::JobFilter& filter) {
  results::JobList jobs;
  PELAB_RETURN_IF_ERROR(ReadJobs(filter, [&](v1::ListJobsResponse& page) {
    jobs.Add(std::move(page));
    return absl::OkStatus();
  }));
  return jobs;
}

absl::Status DataSource::ReadJobs(
    const v1::JobFilter& filter,
    const std::function<absl::Status(v1::ListJobsResponse&)>& on_page) {
  v1::ListJobsRequest request;
  *request.mutable_filter() = filter;
  request.set_specs_apart(true);
  return ForEachPage(&db::RowReader::ListJobs, request, PageRows(), on_page);
}

absl::Status DataSource::ReadCurves(const v1::JobFilter& filter,
                                    const std::function<absl::Status(const CurvePage&)>& on_page) {
  v1::ListCurvesRequest request;
  *request.mutable_filter() = filter;
  return ForEachPage(&db::RowReader::ListCurves, request, db::kMaxPage,
                     [&](const v1::ListCurvesResponse& page) { return on_page(page.rows()); });
}

absl::StatusOr<std::vector<v1::HeadAblationRow>> DataSource::HeadAblations(
    const v1::JobFilter& filter) {
  return AllRows<v1::HeadAblationRow>(&db::RowReader::ListHeadAblations, filter);
}

absl::StatusOr<std::vector<v1::DepositRow>> DataSource::Deposits(const v1::JobFilter& filter,
                                                                 bool whole_models) {
  v1::ListDepositsRequest request;
  request.set_whole_models(whole_models);
  return AllRows<v1::DepositRow>(&db::RowReader::ListDeposits, filter, std::move(request));
}

absl::StatusOr<std::vector<v1::EpochsToRow>> DataSource::EpochsTo(const v1::JobFilter& filter,
                                                                  double test_accuracy) {
  v1::ListEpochsToRequest request;
  request.set_test_accuracy(test_accuracy);
  return AllRows<v1::EpochsToRow>(&db::RowReader::ListEpochsTo, filter, std::move(request));
}

absl::StatusOr<std::vector<v1::AnalysisRow>> DataSource::Analyses(const v1::JobFilter& filter,
                                                                  const std::string& name) {
  v1::ListAnalysesRequest request;
  request.set_name(name);
  return AllRows<v1::AnalysisRow>(&db::RowReader::ListAnalyses, filter, std::move(request));
}

absl::StatusOr<std::vector<v1::ArtifactRow>> DataSource::Artifacts(const v1::JobFilter& filter) {
  return AllRows<v1::ArtifactRow>(&db::RowReader::ListArtifacts, filter);
}

absl::StatusOr<std::vector<v1::AttemptRow>> DataSource::Attempts(const v1::JobFilter& filter) {
  return AllRows<v1::AttemptRow>(&db::RowReader::ListAttempts, filter);
}

absl::StatusOr<std::vector<v1::WorkerRow>> DataSource::Workers() {
  std::vector<v1::WorkerRow> all;
  PELAB_RETURN_IF_ERROR(ForEachPage(&db::RowReader::ListWorkers, v1::ListWorkersRequest(),
                                    PageRows(), [&](v1::ListWorkersResponse& page) {
                                      MoveTo(*page.mutable_workers(), all);
                                      return absl::OkStatus();
                                    }));
  return all;
}

absl::Status DataSource::ReadAudit(const v1::ListAuditRequest& request,
                                   const std::function<absl::Status(const AuditPage&)>& on_page) {
  return ForEachPage(&db::RowReader::ListAudit, request, PageRows(),
                     [&](const v1::ListAuditResponse& page) { return on_page(page.rows()); });
}

absl::StatusOr<std::vector<v1::Sweep>> DataSource::Sweeps() {
  std::vector<v1::Sweep> all;
  PELAB_RETURN_IF_ERROR(ForEachPage(&db::RowReader::ListSweeps, v1::ListSweepsRequest(), PageRows(),
                                    [&](v1::ListSweepsResponse& page) {
                                      MoveTo(*page.mutable_sweeps(), all);
                                      return absl::OkStatus();
                                    }));
  return all;
}

absl::StatusOr<v1::Sweep> DataSource::Sweep(const std::string& sweep) {
  return Ask<v1::Sweep>([&](db::RowReader& reader) { return reader.GetSweep(sweep); });
}

absl::StatusOr<std::vector<v1::SheetRow>> DataSource::Sheets() {
  std::vector<v1::SheetRow> all;
  PELAB_RETURN_IF_ERROR(ForEachPage(&db::RowReader::ListSheets, v1::ListSheetsRequest(), PageRows(),
                                    [&](v1::ListSheetsResponse& page) {
                                      MoveTo(*page.mutable_rows(), all);
                                      return absl::OkStatus();
                                    }));
  return all;
}

absl::StatusOr<v1::Sheet> DataSource::Sheet(const std::string& sheet) {
  v1::GetSheetRequest request;
  request.mutable_sheet()->set_sheet(sheet);
  return Ask<v1::Sheet>([&](db::RowReader& reader) { return reader.GetSheet(request); });
}

absl::StatusOr<std::vector<v1::SheetClaimRow>> DataSource::SheetClaims(const std::string& sheet,
                                                                       bool last_round) {
  v1::ListSheetClaimsRequest request;
  request.mutable_sheet()->set_sheet(sheet);
  request.set_last_round(last_round);
  std::vector<v1::SheetClaimRow> all;
  PELAB_RETURN_IF_ERROR(ForEachPage(&db::RowReader::ListSheetClaims, std::move(request), PageRows(),
                                    [&](v1::ListSheetClaimsResponse& page) {
                                      MoveTo(*page.mutable_rows(), all);
                                      return absl::OkStatus();
                                    }));
  return all;
}

}  // namespace pelab::client
