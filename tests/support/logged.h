// Collects the log of a piece of a test.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>

namespace pelab::testing_support {

// Returns what `act` logs, and replaces the default logger of spdlog meanwhile. Threads that
// existed before must not log.
inline std::string Logged(const std::function<void()>& act) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  act();
  spdlog::set_default_logger(before);
  return text.str();
}

}  // namespace pelab::testing_support
