// audit: what principals did and were refused.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/clock.h"
#include "client/command/commands.h"
#include "client/limits.h"
#include "client/options/times.h"
#include "client/source/connect.h"
#include "client/terminal/row_stream.h"
#include "client/terminal/table.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

struct AuditOptions {
  std::string since;
  std::string principal;
};

// Prints rows as tables of a bounded length: a record may have millions of them.
class AuditTables {
 public:
  explicit AuditTables(const Context& context) : context_(context) {}

  void Add(const v1::AuditRow& row) {
    if (!table_) table_.emplace(Columns());
    const std::string time = render::FormatTime(row.at_ms());
    const std::string_view zone = " UTC";
    table_->AddRow({time.ends_with(zone) ? time.substr(0, time.size() - zone.size()) : time,
                    row.principal().empty() ? "-" : row.principal(), row.method(), row.target(),
                    row.count() > 1 ? Concat(row.outcome(), " (", row.count(), ")") : row.outcome(),
                    row.peer()},
                   row.outcome() == "OK" ? "" : "33");
    if (++rows_ % limits::kAuditTableRows == 0) Print();
  }
  // ABORTED if standard output has failed, so that reading can stop.
  absl::Status EndPage() const {
    return OutputFailed() ? absl::AbortedError("standard output failed") : absl::OkStatus();
  }
  // Prints what is left; `status` is the result of reading.
  absl::StatusOr<int> Finish(const absl::Status& status) {
    Print();
    if (OutputFailed()) return kExitOk;  // main reports the failure
    if (!status.ok()) return status;
    if (rows_ == 0) context_.out("nothing is recorded\n");
    return kExitOk;
  }

 private:
  void Print() {
    if (table_) context_.out(table_->Render(context_.style));
    table_.reset();
  }
  static std::vector<render::Column> Columns() {
    return {{"time (UTC)"},
            {"principal", Align::kLeft, true},
            {"method", Align::kLeft, true},
            {"target", Align::kLeft, true},
            {"outcome", Align::kLeft, true},
            {"peer", Align::kLeft, true}};
  }
  bool OutputFailed() const { return context_.out_failed && context_.out_failed(); }

  const Context& context_;
  std::optional<render::Table> table_;
  std::int64_t rows_ = 0;
};

absl::StatusOr<int> PutAudit(const Context& context, const AuditOptions& options) {
  v1::ListAuditRequest request;
  request.set_principal(options.principal);
  if (!options.since.empty()) {
    PELAB_ASSIGN_OR_RETURN(const std::int64_t since, ParseSince(options.since, absl::Now()));
    request.set_since_ms(since);
  }
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  if (context.output() == Output::kTable) {
    AuditTables tables(context);
    return tables.Finish(source->ReadAudit(request, [&](const auto& page) {
      for (const v1::AuditRow& row : page) tables.Add(row);
      return tables.EndPage();
    }));
  }
  RowStream stream(context, {{"audit", render::Json::array()}}, results::ColumnsOf<v1::AuditRow>());
  return stream.Finish(source->ReadAudit(request, [&](const auto& page) {
    for (const v1::AuditRow& row : page) stream.Add(results::ToJson(row));
    return stream.EndPage();
  }));
}

}  // namespace

void AddAudit(Commands& commands) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App* app = AddCommand(
      commands, "audit", "what principals did and were refused, oldest first",
      "  pelab audit --since 1d\n"
      "  pelab audit --principal alice --since 2026-11-01\n"
      "  pelab audit --output csv > audit.csv\n"
      "From a coordinator, only operators may read it. It is also the view v_audit of the file.");
  app->add_option("--since", options->since,
                  "only from then on: 1d or 2h30m back from now, or a date or time in UTC "
                  "[default: all]")
      ->type_name("TIME");
  app->add_option("--principal", options->principal, "only what this principal did [default: all]")
      ->type_name("NAME");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return PutAudit(*commands.context, *options); };
  });
}

}  // namespace pelab::client
