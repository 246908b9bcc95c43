#include "core/base/status.h"

#include <string.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace pelab {

absl::Status ErrnoStatus(int error_number, absl::string_view what) {
  const char* description = strerrordesc_np(error_number);
  std::string reason = description != nullptr ? description : absl::StrCat("error ", error_number);
  reason[0] = absl::ascii_tolower(static_cast<unsigned char>(reason[0]));
  return absl::Status(absl::ErrnoToStatusCode(error_number), absl::StrCat(what, ": ", reason));
}

absl::Status Annotate(const absl::Status& status, absl::string_view prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace pelab
