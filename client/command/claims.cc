// claims: judges sheets of claims, counts what their seeds cost, lists and compares them.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "client/claims/judged_sheet.h"
#include "client/claims/sheet_cost.h"
#include "client/claims/sheet_difference.h"
#include "client/command/commands.h"
#include "client/options/outputs.h"
#include "client/options/sheet_file.h"
#include "client/source/connect.h"
#include "client/terminal/claim_tables.h"
#include "client/terminal/put.h"
#include "client/terminal/table.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/rows.h"
#include "core/rpc/sheet_document.h"

namespace pelab::client {
namespace {

struct ClaimsOptions {
  std::string sheet;  // a file, or the name, number or hash of a registered sheet
  std::string other;
  std::string sweep;
  std::int64_t first_seed = 0;
};

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

absl::StatusOr<JudgedSheet> Judged(Commands& commands, DataSource& source,
                                   const ClaimsOptions& options) {
  // Somebody who names jobs wants to know what these say.
  const bool named = !options.sweep.empty() || options.first_seed > 0;
  if (!IsFile(options.sheet)) {
    PELAB_ASSIGN_OR_RETURN(const v1::Sheet sheet, RegisteredOrNoFile(source, options.sheet));
    if (!named) return JudgeRegistered(source, sheet);
    return absl::InvalidArgumentError(Concat(
        "sheet ", sheet.row().sheet_id(), " is registered, so its verdicts are those of its ",
        "last round; --first-seed and --sweep are for the sheet's file"));
  }
  PELAB_ASSIGN_OR_RETURN(SheetFile file, LoadSheet(options.sheet, &commands.document_name));
  PELAB_ASSIGN_OR_RETURN(const auto registered, FindRegistered(source, file.sha256));
  if (registered && !named) return JudgeRegistered(source, *registered);
  PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, FilterOf(source, options.sweep, file.bound));
  PELAB_ASSIGN_OR_RETURN(JudgedSheet judged, JudgeFile(source, file, filter, options.first_seed));
  const bool found = judged.later_seed || HasSeeds(judged);
  if (found || !options.sweep.empty() || filter.sweep().empty()) return judged;
  // A sweep of that name has none of the cells. Other sweeps may have them.
  return JudgeFile(source, std::move(file), v1::JobFilter(), options.first_seed);
}

absl::StatusOr<int> Show(Commands& commands, const ClaimsOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(commands.context->options));
  PELAB_ASSIGN_OR_RETURN(const JudgedSheet judged, Judged(commands, *source, options));
  PutVerdicts(*commands.context, judged);
  return kExitOk;
}

// Verdicts alone have a form for papers.
absl::Status CheckIsNoPaper(const Context& context, const char* command) {
  if (!PaperOf(context.options.output_name)) return absl::OkStatus();
  return absl::InvalidArgumentError(Concat("--output ", context.options.output_name, " is for ",
                                           "pelab claims show; pelab claims ", command,
                                           " gives table, json, jsonl or csv"));
}

absl::StatusOr<int> Check(Commands& commands, const ClaimsOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckIsNoPaper(*commands.context, "check"));
  PELAB_ASSIGN_OR_RETURN(
      const SheetFile file,
      FindSheetFile(commands.context->options, options.sheet, &commands.document_name));
  return CheckSheet(*commands.context, file, {.sweep = options.sweep});
}

// A registered sheet, and how many of its claims came to what after its last round.
struct Listed {
  v1::SheetRow row;
  std::int64_t hold = 0;
  std::int64_t fail = 0;
  std::int64_t open = 0;      // that get further seeds
  std::int64_t given_up = 0;  // undecided, and get none
  std::int64_t claims = 0;
};

absl::StatusOr<std::vector<Listed>> ListOf(DataSource& source) {
  PELAB_ASSIGN_OR_RETURN(const auto sheets, source.Sheets());
  std::vector<Listed> list;
  for (const v1::SheetRow& row : sheets) {
    Listed listed{.row = row};
    PELAB_ASSIGN_OR_RETURN(const auto claims,
                           source.SheetClaims(Concat(row.sheet_id()), /*last_round=*/true));
    for (const v1::SheetClaimRow& claim : claims) {
      ++listed.claims;
      if (claim.verdict() == "holds") ++listed.hold;
      if (claim.verdict() == "fails") ++listed.fail;
      if (claim.standing() == "open") {
        ++listed.open;
      } else if (claim.standing() != "decided") {
        ++listed.given_up;
      }
    }
    list.push_back(std::move(listed));
  }
  return list;
}

std::string ListText(const std::vector<Listed>& sheets, const render::Style& style) {
  constexpr auto kRight = render::Column::Align::kRight;
  render::Table table({{"sheet", kRight},
                       {"name"},
                       {"rounds", kRight},
                       {"claims", kRight},
                       {"hold", kRight},
                       {"fail", kRight},
                       {"open", kRight},
                       {"given up", kRight},
                       {"registered"}});
  for (const Listed& sheet : sheets) {
    const auto after_a_round = [&](std::int64_t count) {
      return sheet.claims > 0 ? Concat(count) : std::string("-");
    };
    table.AddRow({Concat(sheet.row.sheet_id()), sheet.row.name(), Concat(sheet.row.ended_rounds()),
                  after_a_round(sheet.claims), after_a_round(sheet.hold), after_a_round(sheet.fail),
                  after_a_round(sheet.open), after_a_round(sheet.given_up),
                  render::FormatTime(sheet.row.created_at_ms()).substr(0, 10)});
  }
  return table.Render(style);
}

render::Json ListJson(const std::vector<Listed>& sheets) {
  render::Json rows = render::Json::array();
  for (const Listed& sheet : sheets) {
    render::Json row = results::ToJson(sheet.row);
    row.erase("document");  // a list has no documents
    row.erase("sweep_document");
    const bool judged = sheet.claims > 0;
    row["claims"] = judged ? render::Json(sheet.claims) : render::Json(nullptr);
    row["hold"] = judged ? render::Json(sheet.hold) : render::Json(nullptr);
    row["fail"] = judged ? render::Json(sheet.fail) : render::Json(nullptr);
    row["open"] = judged ? render::Json(sheet.open) : render::Json(nullptr);
    row["given_up"] = judged ? render::Json(sheet.given_up) : render::Json(nullptr);
    rows.push_back(std::move(row));
  }
  return {{"sheets", std::move(rows)}};
}

absl::StatusOr<int> List(Commands& commands) {
  const Context& context = *commands.context;
  PELAB_RETURN_IF_ERROR(CheckIsNoPaper(context, "list"));
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const std::vector<Listed> sheets, ListOf(*source));
  return Put(context, {.json = [&] { return ListJson(sheets); },
                       .text =
                           [&] {
                             return sheets.empty() ? "no sheet is registered\n"
                                                   : ListText(sheets, context.style);
                           },
                       .rows = "sheets"});
}

// A sheet of `diff`.
struct Compared {
  claims::Sheet sheet;
  std::string sweep;  // its document
  std::string sha256;
  std::optional<v1::SheetRow> registered;
};

// The source is null if there is none: files can be compared all the same.
absl::StatusOr<Compared> ReadCompared(Commands& commands, const std::string& name,
                                      DataSource* source) {
  Compared compared;
  if (IsFile(name)) {
    PELAB_ASSIGN_OR_RETURN(const SheetFile file, LoadSheet(name, &commands.document_name));
    compared = {.sheet = file.bound.sheet, .sweep = file.sweep_document, .sha256 = file.sha256};
    if (source == nullptr) return compared;
    PELAB_ASSIGN_OR_RETURN(const auto known, FindRegistered(*source, file.sha256));
    if (known) compared.registered = known->row();
    return compared;
  }
  if (source == nullptr) {
    PELAB_ASSIGN_OR_RETURN(const auto found, FindSource(commands.context->options));
    return absl::NotFoundError(
        Concat("no file ", name, ", and ", found->Description(), " has no sheet of that name"));
  }
  PELAB_ASSIGN_OR_RETURN(const v1::Sheet stored, RegisteredOrNoFile(*source, name));
  PELAB_ASSIGN_OR_RETURN(
      const claims::BoundSheet bound,
      rpc::BindSheetDocument(stored.row().document(), stored.row().sweep_document()));
  compared = {.sheet = bound.sheet,
              .sweep = SentSweepDocument(bound.sheet, stored.row().sweep_document()),
              .sha256 = stored.row().sha256(),
              .registered = stored.row()};
  return compared;
}

std::string ComparedText(const std::string& name, const Compared& compared) {
  return Concat(
      render::Escape(name), ": ", compared.sheet.name, ", ", compared.sha256.substr(0, 12), "…, ",
      compared.registered
          ? Concat("registered ", render::FormatTime(compared.registered->created_at_ms()),
                   " as sheet ", compared.registered->sheet_id())
          : "not registered",
      "\n");
}

absl::StatusOr<int> Diff(Commands& commands, const ClaimsOptions& options) {
  const Context& context = *commands.context;
  PELAB_RETURN_IF_ERROR(CheckIsNoPaper(context, "diff"));
  const auto source = FindSource(context.options);
  DataSource* const from = source.ok() ? source->get() : nullptr;
  PELAB_ASSIGN_OR_RETURN(const Compared a, ReadCompared(commands, options.sheet, from));
  PELAB_ASSIGN_OR_RETURN(const Compared b, ReadCompared(commands, options.other, from));
  const auto differences = DifferencesOf(a.sheet, a.sweep, b.sheet, b.sweep);
  std::string text = Concat(ComparedText(options.sheet, a), ComparedText(options.other, b));
  if (!differences.empty()) {
    text += DifferencesText(differences);
  } else if (a.sha256 == b.sha256) {
    text += "they are the same sheet\n";
  } else {
    text += "they say the same in other words or another order, but are two sheets\n";
  }
  return Put(context, {.json =
                           [&] {
                             return render::Json{{"same", a.sha256 == b.sha256},
                                                 {"differences", DifferencesJson(differences)}};
                           },
                       .text = [&] { return text; },
                       .rows = "differences"});
}

CLI::App* AddSubcommand(CLI::App* claims, const char* name, const char* help, const char* footer) {
  CLI::App* app = claims->add_subcommand(name, help);
  app->footer(footer);
  return app;
}

void AddSweepOption(CLI::App* app, ClaimsOptions& options) {
  app->add_option("--sweep", options.sweep,
                  "number or name of the stored sweep [default: the one with the name of the "
                  "sheet's sweep; all jobs, if it has none of the cells]");
}

}  // namespace

void AddClaims(Commands& commands) {
  CLI::App* claims = AddCommand(commands, "claims", "claims about results, and whether they hold",
                                "  pelab claims check table1.claims.yaml\n"
                                "  pelab claims show table1.claims.yaml\n"
                                "  pelab claims list\n"
                                "  pelab claims diff table1.claims.yaml table1-v2.claims.yaml");
  claims->require_subcommand(1);
  claims->fallthrough();
  auto options = std::make_shared<ClaimsOptions>();
  const auto chosen = [&commands, options](auto run) {
    return [&commands, options, run] {
      commands.chosen = [&commands, options, run] { return run(commands, *options); };
    };
  };
  CLI::App* check = AddSubcommand(
      claims, "check",
      "the cells that a sheet is about, and the jobs and the time that its seeds need",
      "Nothing is run. The times are the means of stored jobs.\nExamples:\n"
      "  pelab claims check table1.claims.yaml\n"
      "  pelab claims check table1.claims.yaml --db table1.db --output json");
  check
      ->add_option("SHEET", options->sheet,
                   "a claim sheet, or the name, number or hash of a registered one")
      ->required();
  AddSweepOption(check, *options);
  check->callback(chosen(Check));
  CLI::App* show = AddSubcommand(
      claims, "show", "verdicts on the results that are stored",
      "A sheet that is registered (pelab settle) has the verdicts of its last round. Any other is "
      "judged on what is stored: seeds count in the order of their numbers, up to the first one "
      "that is not complete.\n"
      "Examples:\n"
      "  pelab claims show table1.claims.yaml\n"
      "  pelab claims show table1-small --server gpu01:7470\n"
      "  pelab claims show table1.claims.yaml --first-seed 4 --output csv");
  show->add_option("SHEET", options->sheet,
                   "a claim sheet, or the name, number or hash of a registered one")
      ->required();
  AddSweepOption(show, *options);
  show->add_option("--first-seed", options->first_seed,
                   "the first seed that counts; earlier ones are left out [default: 0]")
      ->check(CLI::Range(0, static_cast<int>(claims::kFirstPilotSeed) - 1));
  show->callback(chosen(Show));
  CLI::App* list = AddSubcommand(claims, "list", "the sheets that are registered",
                                 "Examples:\n"
                                 "  pelab claims list\n"
                                 "  pelab claims list --db table1.db --output csv");
  list->callback([&commands] { commands.chosen = [&commands] { return List(commands); }; });
  CLI::App* diff = AddSubcommand(
      claims, "diff", "what two sheets say differently, and which of them are registered",
      "An edited sheet is another sheet. Each is a file, or the name, number or hash of a "
      "registered one.\nExamples:\n"
      "  pelab claims diff table1.claims.yaml table1-v2.claims.yaml\n"
      "  pelab claims diff 3 table1.claims.yaml");
  diff->add_option("A", options->sheet, "a sheet")->required();
  diff->add_option("B", options->other, "the sheet to compare it with")->required();
  diff->callback(chosen(Diff));
}

}  // namespace pelab::client
