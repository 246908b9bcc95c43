#include "core/base/logging.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <array>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/log_scope.h"
#include "core/base/utf8.h"

namespace pelab {
namespace {

std::string_view PayloadOf(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}

void AppendJsonString(std::string_view text, std::string* out) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      quoted += c;
    }
  }
  absl::StrAppend(out, "\"", EscapeJson(quoted), "\"");
}

void AppendField(absl::string_view name, const std::string& value, std::string* line) {
  if (value.empty()) return;
  absl::StrAppend(line, ",\"", name, "\":");
  AppendJsonString(value, line);
}
void AppendField(absl::string_view name, std::int64_t value, std::string* line) {
  if (value != 0) absl::StrAppend(line, ",\"", name, "\":", value);
}

void AppendIds(const LogIds& ids, std::string* line) {
  AppendField("trace_id", ids.trace_id, line);
  AppendField("span_id", ids.span_id, line);
  AppendField("principal", ids.principal, line);
  AppendField("sweep_id", ids.sweep_id, line);
  AppendField("job_id", ids.job_id, line);
  AppendField("attempt_id", ids.attempt_id, line);
  AppendField("worker_id", ids.worker_id, line);
}

// The message of a line of text: names of workers, errors of trainers and the like come from
// outside and must not write lines of their own.
class EscapedPayload final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& destination) override {
    const std::string text = Escape(PayloadOf(message));
    destination.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedPayload>();
  }
};

std::unique_ptr<spdlog::formatter> TextFormatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<EscapedPayload>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %n: %*");
  return formatter;
}

class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string program) : program_(std::move(program)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& destination) override {
    const auto level = spdlog::level::to_string_view(message.level);
    std::string line = absl::StrCat(
        "{\"time\":\"",
        absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(message.time),
                         absl::UTCTimeZone()),
        "\",\"level\":\"", absl::string_view(level.data(), level.size()), "\",\"program\":");
    AppendJsonString(program_, &line);
    line += ",\"message\":";
    AppendJsonString(PayloadOf(message), &line);
    AppendIds(CurrentLogIds(), &line);  // the logger formats on the thread that logs
    line += "}\n";
    destination.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(program_);
  }

 private:
  const std::string program_;
};

constexpr std::array<std::pair<absl::string_view, spdlog::level::level_enum>, 6> kLevels = {{
    {"trace", spdlog::level::trace},
    {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},
    {"warning", spdlog::level::warn},
    {"error", spdlog::level::err},
    {"off", spdlog::level::off},
}};

}  // namespace

absl::Status SetUpLogging(absl::string_view program, const LogOptions& options) {
  const auto* level = kLevels.begin();
  while (level != kLevels.end() && level->first != options.level) ++level;
  if (level == kLevels.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown log level \"", options.level,
                     "\"; allowed: trace, debug, info, warning, error, off"));
  }
  if (options.format != "text" && options.format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown log format \"", options.format, "\"; allowed: text, json"));
  }
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(std::string(program), std::move(sink));
  if (options.format == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>(std::string(program)));
  } else {
    logger->set_formatter(TextFormatter());
  }
  logger->set_level(level->second);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace pelab
