// Golden hashes were computed with Python: hashlib.sha256(json.dumps([previous, audit_id, at_ms,
// principal, peer, method, target, outcome, count, trace_id], separators=(",", ":"),
// ensure_ascii=False).encode()).
#include "core/access/audit_chain.h"

#include <gtest/gtest.h>

#include "core/access/token.h"
#include "core/access/traceparent.h"

namespace pelab::access {
namespace {

v1::AuditRow First() {
  v1::AuditRow row;
  row.set_audit_id(1);
  row.set_at_ms(1795270470959);
  row.set_principal("alice");
  row.set_peer("unix:");
  row.set_method("Sweeps/Cancel");
  row.set_target("sweep 3 (l\u00e4ngen \"x\")");
  row.set_outcome("OK");
  row.set_count(1);
  row.set_trace_id("4bf92f3577b34da6a3ce929d0e0e4736");
  return row;
}

TEST(AuditChainTest, GoldenHashes) {
  const std::string first = AuditHash(kAuditStart, First());
  EXPECT_EQ(first, "a1eea4a7c2af1df3e0173677e74a9d812fe5246bc471c4ae95c883349faf3ca7");
  v1::AuditRow second;
  second.set_audit_id(2);
  second.set_at_ms(1795270470960);
  second.set_peer("ipv4:10.0.0.7:51234");
  second.set_outcome("REFUSED");
  second.set_count(290);
  EXPECT_EQ(AuditHash(first, second),
            "568053387438dad13cc1c4de382683031bf76a9d70c8cfb8d026a0f7a0d0972d");
}

TEST(AuditChainTest, EveryColumnCounts) {
  const std::string hash = AuditHash(kAuditStart, First());
  const auto* descriptor = v1::AuditRow::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    v1::AuditRow changed = First();
    const auto* field = descriptor->field(i);
    if (field->name() == "sha256") continue;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
      changed.GetReflection()->SetString(&changed, field, "another");
    } else {
      changed.GetReflection()->SetInt64(&changed, field, 77);
    }
    EXPECT_NE(AuditHash(kAuditStart, changed), hash) << field->name();
  }
  EXPECT_NE(AuditHash(hash, First()), hash);
}

TEST(TraceparentTest, OnlyAWellFormedIdIsTaken) {
  EXPECT_EQ(TraceIdOf("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            "4bf92f3577b34da6a3ce929d0e0e4736");
  for (const char* bad : {"", "00-4bf92f3577b34da6a3ce929d0e0e4736",
                          "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                          "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                          "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e473\n-00f067aa0ba902b7-01"}) {
    EXPECT_EQ(TraceIdOf(bad), "") << bad;
  }
}

TEST(TokenTest, IsLongRandomAndKnownByItsPrefix) {
  const std::string token = NewToken();
  EXPECT_EQ(token.size(), 70u);
  EXPECT_EQ(token.substr(0, 6), "pelab_");
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef", 6), token.npos);
  EXPECT_NE(token, NewToken());
  // echo -n abc | sha256sum
  EXPECT_EQ(TokenHash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace pelab::access
