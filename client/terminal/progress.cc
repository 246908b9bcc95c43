#include "client/terminal/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "client/limits.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::render {
namespace {

constexpr std::size_t kMaxRunningLines = 8;
constexpr int kLeastGridLines = 3;  // a title, a row and the line that explains the marks

double Fraction(std::uint64_t done, std::uint64_t total) {
  return total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total);
}

std::string Summary(const ProgressState& s, std::optional<double> eta) {
  std::string text = Concat(s.succeeded, "/", s.jobs, " jobs");
  if (s.failed > 0) text += Concat(", ", s.failed, " failed");
  text += Concat(", ", s.epochs_done, "/", s.epochs, " epochs");
  if (s.running > 0) text += Concat(", ", s.running, " running");
  if (eta) text += ", about " + FormatSeconds(*eta) + " left";
  return text;
}

}  // namespace

std::string Bar(double fraction, int width, const Style& style) {
  const int full = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * width));
  std::string done, rest;
  for (int i = 0; i < width; ++i)
    (i < full ? done : rest) += style.color ? "━" : (i < full ? "#" : "-");
  return style.color ? Paint(style, "32", done) + Paint(style, "2", rest) : "[" + done + rest + "]";
}

std::optional<double> Eta::Update(double now_seconds, const ProgressState& state) {
  if (!first_done_) first_done_ = state.epochs_done;
  if (state.epochs_done <= *first_done_) return std::nullopt;
  if (!start_) start_ = Start{now_seconds, state.epochs_done};
  if (state.epochs_done <= start_->done || state.epochs_done >= state.epochs) return std::nullopt;
  const double pace =
      static_cast<double>(state.epochs_done - start_->done) / (now_seconds - start_->seconds);
  if (!(pace > 0) || !std::isfinite(pace)) return std::nullopt;
  return static_cast<double>(state.epochs - state.epochs_done) / pace;
}

void ProgressView::Update(double now_seconds, const ProgressState& state) {
  const std::optional<double> eta = eta_.Update(now_seconds, state);
  redraw_ ? Draw(state, eta) : Plain(now_seconds, state, eta);
}

void ProgressView::Draw(const ProgressState& state, std::optional<double> eta) {
  std::vector<std::string> lines;
  const std::string summary = Escape(state.name) + "  " + Summary(state, eta);
  const int bar = std::clamp(style_.width - DisplayWidth(summary) - 4, 0, 30);
  lines.push_back(bar >= 8
                      ? Bar(Fraction(state.epochs_done, state.epochs), bar, style_) + "  " + summary
                      : Truncate(summary, style_.width - 1));
  for (const RunningLine& job : state.running_jobs) {
    if (lines.size() > kMaxRunningLines) {
      lines.push_back(Concat("  and ", state.running_jobs.size() - kMaxRunningLines, " more"));
      break;
    }
    const std::string accuracy =
        job.epochs_done > 0 ? "  test accuracy " + Fixed(job.test_accuracy, 4) : "";
    const std::string doing =
        job.analysing ? "analyzing" : Concat("epoch ", job.epochs_done, "/", job.epochs);
    lines.push_back(Truncate(Concat("  ", PadRight(Escape(job.label), 28), "  ", doing, accuracy,
                                    "  ", Escape(job.where)),
                             style_.width - 1));
  }
  if (!state.waiting_reason.empty() && state.running == 0) {
    lines.push_back(Truncate("  waiting: " + Escape(state.waiting_reason), style_.width - 1));
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  // Lines that scroll off the top of the terminal cannot be redrawn.
  const int room = style_.height - 2 - static_cast<int>(lines.size());
  if (!state.grid.empty() && room >= kLeastGridLines) {
    out += "\n" + GridText(state.grid, style_, room);
  }
  Finish();
  lines_ = static_cast<int>(std::count(out.begin(), out.end(), '\n'));
  write_(out);
}

void ProgressView::Plain(double now_seconds, const ProgressState& state,
                         std::optional<double> eta) {
  const std::uint64_t ended = state.succeeded + state.failed;
  const bool due = now_seconds - printed_at_ >= client::limits::kPlainSeconds &&
                   state.epochs_done != printed_epochs_;
  if (printed_ && ended == printed_ended_ && !due) return;
  printed_ = true;
  printed_at_ = now_seconds;
  printed_ended_ = ended;
  printed_epochs_ = state.epochs_done;
  std::string line = Escape(state.name) + ": " + Summary(state, eta);
  if (!state.waiting_reason.empty() && state.running == 0)
    line += "; waiting: " + Escape(state.waiting_reason);
  write_(line + "\n");
}

void ProgressView::Finish() {
  if (!redraw_ || lines_ == 0) return;
  write_(Concat("\x1b[", lines_, "A\x1b[J"));  // moves to the first line and clears from there
  lines_ = 0;
}

}  // namespace pelab::render
