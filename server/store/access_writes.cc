// Principals, what they are charged for, and the record of what they do.
#include <cstdint>
#include <optional>
#include <string>

#include "core/access/audit_chain.h"
#include "core/access/role.h"
#include "core/base/utf8.h"
#include "server/limits.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

constexpr char kPrincipalColumns[] =
    "name, role, coalesce(token_sha256, ''), coalesce(previous_token_sha256, ''), previous_until, "
    "coalesce(certificate_uri, ''), created_at, expires_at, disabled, share, max_slots, "
    "max_queued, gpu_seconds, max_priority, gpu_seconds_used";

Principal ReadPrincipal(const Query& row) {
  Principal principal{.name = row.Text(0),
                      .role = access::ParseRole(row.Text(1)).value_or(v1::ROLE_READER),
                      .token_sha256 = row.Text(2),
                      .previous_token_sha256 = row.Text(3),
                      .previous_until = row.Int(4),
                      .certificate_uri = row.Text(5),
                      .created_at = row.Int(6),
                      .expires_at = row.Int(7),
                      .disabled = row.Int(8) != 0,
                      .gpu_seconds_used = row.Real(14)};
  principal.limits.set_share(row.Real(9));
  principal.limits.set_max_slots(static_cast<int>(row.Int(10)));
  principal.limits.set_max_queued(row.Int(11));
  principal.limits.set_gpu_seconds(row.Real(12));
  principal.limits.set_max_priority(static_cast<int>(row.Int(13)));
  return principal;
}

std::optional<Principal> LoadPrincipal(Database& db, const std::string& name) {
  static const std::string sql =
      std::string("SELECT ").append(kPrincipalColumns).append(" FROM principals WHERE name = ?");
  Query row = db.Run(sql.c_str(), name);
  if (!row.Step()) return std::nullopt;
  return ReadPrincipal(row);
}

std::optional<std::string> OrNull(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void StorePrincipal(Database& db, const Principal& p) {
  db.Execute(
      "INSERT OR REPLACE INTO principals (name, role, token_sha256, previous_token_sha256, "
      "previous_until, certificate_uri, created_at, expires_at, disabled, share, max_slots, "
      "max_queued, gpu_seconds, max_priority, gpu_seconds_used) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      p.name, access::NameOf(p.role), OrNull(p.token_sha256), OrNull(p.previous_token_sha256),
      p.previous_until, OrNull(p.certificate_uri), p.created_at, p.expires_at, p.disabled,
      p.limits.share(), p.limits.max_slots(), p.limits.max_queued(), p.limits.gpu_seconds(),
      p.limits.max_priority(), p.gpu_seconds_used);
}

bool CanOperate(const Principal& principal, std::int64_t now) {
  return principal.role == v1::ROLE_OPERATOR && !principal.disabled &&
         (principal.expires_at == 0 || principal.expires_at > now);
}

bool OthersCanOperate(Database& db, const std::string& name, std::int64_t now) {
  return db
      .Run(
          "SELECT 1 FROM principals WHERE role = 'operator' AND disabled = 0 AND "
          "(expires_at = 0 OR expires_at > ?) AND name <> ? LIMIT 1",
          now, name)
      .Step();
}

void Change(Principal& principal, const v1::ChangePrincipalRequest& change) {
  v1::PrincipalLimits& limits = principal.limits;
  if (change.has_disabled()) principal.disabled = change.disabled();
  if (change.has_role()) principal.role = change.role();
  if (change.has_expires_at_ms()) principal.expires_at = change.expires_at_ms();
  if (change.has_share()) limits.set_share(change.share());
  if (change.has_max_slots()) limits.set_max_slots(change.max_slots());
  if (change.has_max_queued()) limits.set_max_queued(change.max_queued());
  if (change.has_gpu_seconds()) limits.set_gpu_seconds(change.gpu_seconds());
  if (change.has_max_priority()) limits.set_max_priority(change.max_priority());
}

}  // namespace

absl::StatusOr<std::vector<Principal>> Store::Principals() {
  static const std::string sql =
      std::string("SELECT ").append(kPrincipalColumns).append(" FROM principals ORDER BY name");
  try {
    std::vector<Principal> principals;
    Query rows = database_->Run(sql.c_str());
    while (rows.Step()) principals.push_back(ReadPrincipal(rows));
    return principals;
  } catch (const SQLite::Exception& error) {
    return ToStatus(error, "cannot read the database");
  }
}

std::int64_t QueuedOf(Batch& batch, const std::string& owner) {
  Query row = batch.db.Run(
      "SELECT coalesce(sum(n.queued), 0) FROM sweeps AS s JOIN sweep_counts AS n USING (sweep_id) "
      "WHERE s.owner = ? AND s.owner <> '' AND s.state IN ('expanding', 'active')",
      owner);
  return row.Step() ? row.Int(0) : 0;
}

double ChargeAttempt(Batch& batch, std::int64_t attempt_id, std::int64_t now) {
  std::string principal;
  double seconds = 0;
  {
    Query row = batch.db.Run(
        "SELECT principal, max(?2 - started_at, 0) / 1000.0, worker_id, slot, started_at "
        "FROM attempts WHERE attempt_id = ?1 AND device <> 'cpu'",
        attempt_id, now);
    if (!row.Step()) return 0;
    principal = row.Text(0);
    Query together = batch.db.Run(
        "SELECT count(*) FROM attempts WHERE worker_id = ? AND started_at = ? AND slot = ?",
        row.Text(2), row.Int(4), row.Int(3));
    together.Step();
    seconds = row.Real(1) / static_cast<double>(together.Int(0));
  }
  if (!principal.empty()) {
    batch.db.Execute("UPDATE principals SET gpu_seconds_used = gpu_seconds_used + ? WHERE name = ?",
                     seconds, principal);
  }
  return seconds;
}

WriteResult Do(Batch& batch, const AddPrincipal& write) {
  const Principal& added = write.principal;
  {
    Query taken = batch.db.Run(
        "SELECT 1 FROM principals WHERE name = ?1 OR (certificate_uri = ?2 AND ?2 <> '')",
        added.name, added.certificate_uri);
    if (taken.Step()) return PrincipalStored{.refusal = PrincipalStored::kTaken};
  }
  if (!write.other_operator && !CanOperate(added, added.created_at) &&
      !OthersCanOperate(batch.db, added.name, added.created_at)) {
    return PrincipalStored{.refusal = PrincipalStored::kNotOperator};
  }
  StorePrincipal(batch.db, added);
  return PrincipalStored{.principal = added};
}

WriteResult Do(Batch& batch, const ChangePrincipal& write) {
  std::optional<Principal> found = LoadPrincipal(batch.db, write.change.name());
  if (!found) return PrincipalStored{.refusal = PrincipalStored::kUnknown};
  Principal& principal = *found;
  const bool could_operate = CanOperate(principal, write.now);
  Change(principal, write.change);
  if (!write.token_sha256.empty()) {
    if (!principal.certificate_uri.empty()) {
      return PrincipalStored{.refusal = PrincipalStored::kCertificate};
    }
    principal.previous_token_sha256 = principal.token_sha256;
    principal.previous_until = write.previous_until;
    principal.token_sha256 = write.token_sha256;
  }
  if (could_operate && !CanOperate(principal, write.now) && !write.other_operator &&
      !OthersCanOperate(batch.db, principal.name, write.now)) {
    return PrincipalStored{.refusal = PrincipalStored::kLastOperator};
  }
  StorePrincipal(batch.db, principal);
  return PrincipalStored{.principal = principal};
}

WriteResult Do(Batch& batch, const RecordAct& write) {
  v1::AuditRow row;
  row.set_audit_id(1);
  std::string previous(access::kAuditStart);
  {
    Query last = batch.db.Run("SELECT audit_id, sha256 FROM audit ORDER BY audit_id DESC LIMIT 1");
    if (last.Step()) {
      row.set_audit_id(last.Int(0) + 1);
      previous = last.Text(1);
    }
  }
  row.set_at_ms(write.at);
  row.set_principal(write.principal);
  row.set_peer(Shorten(write.peer, limits::kAuditTextBytes));
  row.set_method(Shorten(write.method, limits::kAuditTextBytes));
  row.set_target(Shorten(write.target, limits::kAuditTextBytes));
  row.set_outcome(!write.outcome.empty() ? write.outcome : batch.refused ? "REFUSED" : "OK");
  row.set_count(write.count);
  row.set_trace_id(Shorten(write.trace_id, limits::kTraceIdBytes));
  batch.db.Execute(
      "INSERT INTO audit (audit_id, at_ms, principal, peer, method, target, outcome, count, "
      "trace_id, sha256) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      row.audit_id(), row.at_ms(), row.principal(), row.peer(), row.method(), row.target(),
      row.outcome(), row.count(), row.trace_id(), access::AuditHash(previous, row));
  return Nothing{};
}

}  // namespace pelab::store
