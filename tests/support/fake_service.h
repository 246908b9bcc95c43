// The services of a coordinator on a Unix socket, over a database file. Reading calls answer with
// the reader that the real coordinator uses.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "pelab/v1/admin.pb.h"

namespace pelab::client {

class ServiceForTest {
 public:
  ServiceForTest(const std::string& database, const std::string& socket);
  ~ServiceForTest();
  const std::string& address() const { return address_; }
  // Sets a function that is called before each page of curves, which it receives as a number from
  // 0. Its error becomes the answer.
  void OnCurves(std::function<absl::Status(int page)> on_curves);
  // From now on, files have no end. Returns how many pieces were sent.
  std::shared_ptr<const std::atomic<int>> SendFilesWithoutEnd();
  // Adds or replaces a principal of its Admin service (fake_admin.h).
  void PutPrincipal(const v1::Principal& principal);

 private:
  struct State;
  std::string address_;
  std::unique_ptr<State> state_;
};

}  // namespace pelab::client
