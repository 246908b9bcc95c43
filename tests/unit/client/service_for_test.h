// A coordinator's reading services over a database file, on a Unix socket: what the real one
// answers with the same reader.
#pragma once

#include <memory>
#include <string>

namespace pelab::client {

class ServiceForTest {
 public:
  ServiceForTest(const std::string& database, const std::string& socket);
  ~ServiceForTest();
  const std::string& address() const { return address_; }

 private:
  struct State;
  std::string address_;
  std::unique_ptr<State> state_;
};

}  // namespace pelab::client
