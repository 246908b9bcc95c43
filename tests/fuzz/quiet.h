// Logs nothing, but formats every message: what pelab logs about bad input is its code, too.
#pragma once

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#if __has_include(<google/protobuf/stubs/logging.h>)  // not from Protobuf 22 on
#include <google/protobuf/stubs/logging.h>
#endif

namespace pelab::fuzz {

inline const bool kQuiet = [] {
  spdlog::set_default_logger(spdlog::create<spdlog::sinks::null_sink_mt>("fuzz"));
#if __has_include(<google/protobuf/stubs/logging.h>)
  google::protobuf::SetLogHandler(nullptr);  // it reports every text that is not UTF-8
#endif
  return true;
}();

}  // namespace pelab::fuzz
