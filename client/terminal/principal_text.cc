#include "client/terminal/principal_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "client/terminal/table.h"
#include "core/access/role.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;
using render::Json;

constexpr double kSecondsOfHour = 3600;
constexpr std::size_t kDateBytes = 10;  // of "2026-03-01 14:05:09 UTC"

Json NullIfNone(auto limit) { return limit == 0 ? Json(nullptr) : Json(limit); }

double ShareOf(const v1::Principal& principal) {
  return principal.limits().share() == 0 ? 1 : principal.limits().share();
}

// "3/8"; "3" without a limit.
std::string UsedOf(std::int64_t used, std::int64_t limit) {
  return limit == 0 ? Concat(used) : Concat(used, "/", limit);
}

std::string GpuHours(const v1::Principal& principal) {
  const double limit = principal.limits().gpu_seconds();
  const std::string used = render::Fixed(principal.gpu_seconds_used() / kSecondsOfHour, 1);
  return limit == 0 ? used : Concat(used, "/", render::Fixed(limit / kSecondsOfHour, 1));
}

std::string EndText(const v1::Principal& principal) {
  return principal.expires_at_ms() == 0 ? "never" : render::FormatTime(principal.expires_at_ms());
}

}  // namespace

const std::vector<std::string> kRoleNames = {"reader", "submitter", "operator", "worker", "scaler"};

std::string PrincipalState(const v1::Principal& principal, absl::Time now) {
  if (principal.disabled()) return "disabled";
  const std::int64_t end = principal.expires_at_ms();
  return end != 0 && end <= absl::ToUnixMillis(now) ? "expired" : "active";
}

Json PrincipalJson(const v1::Principal& principal, absl::Time now) {
  const v1::PrincipalLimits& limits = principal.limits();
  const bool has_certificate = !principal.certificate_uri().empty();
  return {{"name", principal.name()},
          {"role", access::NameOf(principal.role())},
          {"state", PrincipalState(principal, now)},
          {"certificate_uri", has_certificate ? Json(principal.certificate_uri()) : Json(nullptr)},
          {"created_at_ms", NullIfNone(principal.created_at_ms())},
          {"expires_at_ms", NullIfNone(principal.expires_at_ms())},
          {"disabled", principal.disabled()},
          {"running_jobs", principal.running_jobs()},
          {"max_slots", NullIfNone(limits.max_slots())},
          {"queued_jobs", principal.queued_jobs()},
          {"max_queued", NullIfNone(limits.max_queued())},
          {"gpu_seconds_used", principal.gpu_seconds_used()},
          {"gpu_seconds", NullIfNone(limits.gpu_seconds())},
          {"share", ShareOf(principal)},
          {"max_priority", limits.max_priority()}};
}

const std::vector<std::string>& PrincipalColumns() {
  static const auto& columns = *new std::vector<std::string>([] {
    const Json row = PrincipalJson({}, absl::UnixEpoch());
    std::vector<std::string> names;
    for (const auto& [name, value] : row.items()) names.push_back(name);
    return names;
  }());
  return columns;
}

std::string PrincipalTable(const std::vector<v1::Principal>& principals, absl::Time now,
                           const render::Style& style) {
  render::Table table({{"name", Align::kLeft, true},
                       {"role"},
                       {"by"},
                       {"expires"},
                       {"state"},
                       {"slots", Align::kRight},
                       {"queued", Align::kRight},
                       {"GPU hours", Align::kRight},
                       {"share", Align::kRight}});
  for (const v1::Principal& principal : principals) {
    const v1::PrincipalLimits& limits = principal.limits();
    const std::string state = PrincipalState(principal, now);
    table.AddRow({principal.name(), access::NameOf(principal.role()),
                  principal.certificate_uri().empty() ? "token" : "certificate",
                  EndText(principal).substr(0, kDateBytes), state,
                  UsedOf(principal.running_jobs(), limits.max_slots()),
                  UsedOf(principal.queued_jobs(), limits.max_queued()), GpuHours(principal),
                  render::Shortest(ShareOf(principal))},
                 state == "active" ? "" : "2");
  }
  return table.Render(style);
}

std::string PrincipalText(const v1::Principal& principal, absl::Time now,
                          const render::Style& style) {
  const v1::PrincipalLimits& limits = principal.limits();
  const std::string& uri = principal.certificate_uri();
  render::Table table({{"property"}, {"value", Align::kLeft, true}});
  table.AddRow({"name", principal.name()});
  table.AddRow({"role", access::NameOf(principal.role())});
  table.AddRow({"by", uri.empty() ? "token" : Concat("certificate ", uri)});
  // Nobody created the principal of `pelab-server --token-file`.
  if (principal.created_at_ms() != 0) {
    table.AddRow({"created", render::FormatTime(principal.created_at_ms())});
  }
  table.AddRow({"expires", EndText(principal)});
  table.AddRow({"state", PrincipalState(principal, now)});
  table.AddRow({"slots", UsedOf(principal.running_jobs(), limits.max_slots())});
  table.AddRow({"queued", UsedOf(principal.queued_jobs(), limits.max_queued())});
  table.AddRow({"GPU hours", GpuHours(principal)});
  table.AddRow({"share", render::Shortest(ShareOf(principal))});
  table.AddRow({"priority", Concat("at most ", limits.max_priority())});
  return table.Render(style);
}

}  // namespace pelab::client
