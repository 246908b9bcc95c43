// A coordinator's reading services over a database file, on a Unix socket: what the real one
// answers with the same reader.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace pelab::client {

class ServiceForTest {
 public:
  ServiceForTest(const std::string& database, const std::string& socket);
  ~ServiceForTest();
  const std::string& address() const { return address_; }
  // Is asked before each page of curves that is answered, the first being 0; an error is the answer.
  void OnCurves(std::function<absl::Status(int page)> on_curves);

 private:
  struct State;
  std::string address_;
  std::unique_ptr<State> state_;
};

}  // namespace pelab::client
