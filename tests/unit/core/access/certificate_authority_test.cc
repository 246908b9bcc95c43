// Certificates are judged by OpenSSL's own verification, and by the openssl program where it is
// installed.
#include "core/access/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/access/certificate_end.h"
#include "core/access/openssl_handles.h"
#include "core/base/file.h"
#include "core/base/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::access {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = CertificateRequest::Kind;

using Store = Owned<X509_STORE, X509_STORE_free>;
using StoreContext = Owned<X509_STORE_CTX, X509_STORE_CTX_free>;

std::string Read(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, 1 << 20);
  EXPECT_THAT(text, IsOk());
  return text.value_or("");
}

// All certificates of a PEM file, in their order.
std::vector<Certificate> CertificatesOf(const std::string& path) {
  const std::string text = Read(path);
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  std::vector<Certificate> all;
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) all.emplace_back(one);
  ERR_clear_error();
  return all;
}

Key KeyOf(const std::string& path) {
  const std::string text = Read(path);
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

unsigned ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

// "" if `certificate` is valid for `purpose` at `time` with `authority` as the only root.
std::string Refusal(X509* certificate, X509* authority, int purpose, absl::Time time) {
  const Store store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), authority);
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(time));
  if (X509_verify_cert(context.get()) == 1) return "";
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

// The alternative names, "URI:…" or "DNS:…".
std::vector<std::string> UrisAndDnsNames(const X509* certificate) {
  std::vector<std::string> texts;
  const GeneralNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const auto* value = static_cast<ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type));
    if (type == GEN_IPADD) continue;
    texts.push_back(
        absl::StrCat(type == GEN_URI ? "URI:" : "DNS:",
                     std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                                 static_cast<std::size_t>(ASN1_STRING_length(value)))));
  }
  return texts;
}

class CertificateAuthorityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(MakeAuthority(authority_, "pelab CA", 3650, now_), IsOk());
    root_ = std::move(CertificatesOf(authority_ + "/ca.pem").at(0));
  }

  absl::StatusOr<IssuedCertificate> Issue(Kind kind, const std::vector<std::string>& names,
                                          int days = 365) {
    return IssueCertificate(authority_, {.kind = kind, .names = names, .days = days}, out_, now_);
  }
  // The certificate itself, after a check that its file also has the chain.
  Certificate Issued(Kind kind, const std::vector<std::string>& names) {
    const auto issued = Issue(kind, names);
    EXPECT_THAT(issued, IsOk());
    if (!issued.ok()) return nullptr;
    std::vector<Certificate> chain = CertificatesOf(issued->certificate_file);
    EXPECT_EQ(chain.size(), 2u);
    EXPECT_EQ(X509_cmp(chain.at(1).get(), root_.get()), 0) << "the chain ends in the authority";
    EXPECT_EQ(X509_check_private_key(chain[0].get(), KeyOf(issued->key_file).get()), 1);
    return std::move(chain[0]);
  }

  TempDir dir_;
  const absl::Time now_ = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()));
  const std::string authority_ = dir_ / "new/ca";
  const std::string out_ = dir_ / "out";
  Certificate root_;
};

TEST_F(CertificateAuthorityTest, TheAuthoritySignsItselfAndNothingBelowOthers) {
  EXPECT_EQ(X509_check_ca(root_.get()), 1);
  EXPECT_EQ(X509_get_pathlen(root_.get()), 0);
  EXPECT_EQ(X509_get_key_usage(root_.get()), unsigned{KU_KEY_CERT_SIGN | KU_CRL_SIGN});
  EXPECT_EQ(X509_check_private_key(root_.get(), KeyOf(authority_ + "/ca.key").get()), 1);
  EXPECT_EQ(X509_verify(root_.get(), X509_get0_pubkey(root_.get())), 1);
  EXPECT_NE(Refusal(root_.get(), root_.get(), X509_PURPOSE_SSL_CLIENT, now_), "")
      << "it is neither a client nor a server";
  EXPECT_NE(Refusal(root_.get(), root_.get(), X509_PURPOSE_SSL_SERVER, now_), "");
  char name[100] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(root_.get()), NID_commonName, name, sizeof name);
  EXPECT_STREQ(name, "pelab CA");
}

TEST_F(CertificateAuthorityTest, KeysAreForTheOwnerAlone) {
  ASSERT_THAT(Issue(Kind::kWorker, {"gpu01"}), IsOk());
  EXPECT_EQ(ModeOf(authority_ + "/ca.key"), 0600u);
  EXPECT_EQ(ModeOf(out_ + "/gpu01.key"), 0600u);
  EXPECT_EQ(ModeOf(out_ + "/gpu01.pem") & ~0644u, 0u);
}

TEST_F(CertificateAuthorityTest, KeysAndSignaturesAreOfTheirKind) {
  const Certificate worker = Issued(Kind::kWorker, {"gpu01"});
  for (X509* certificate : {root_.get(), worker.get()}) {
    char group[100] = "";
    EVP_PKEY_get_group_name(X509_get0_pubkey(certificate), group, sizeof group, nullptr);
    EXPECT_STREQ(group, SN_X9_62_prime256v1);
    EXPECT_EQ(X509_get_signature_nid(certificate), NID_ecdsa_with_SHA256);
    EXPECT_EQ(X509_get_version(certificate), X509_VERSION_3);
  }
}

TEST_F(CertificateAuthorityTest, WorkersAndPrincipalsAreClientsWithAUri) {
  const Certificate worker = Issued(Kind::kWorker, {"gpu01"});
  EXPECT_THAT(UrisAndDnsNames(worker.get()), ElementsAre("URI:pelab://worker/gpu01"));
  const Certificate alice = Issued(Kind::kClient, {"alice.b_c-d"});
  EXPECT_THAT(UrisAndDnsNames(alice.get()), ElementsAre("URI:pelab://principal/alice.b_c-d"));
  for (X509* client : {worker.get(), alice.get()}) {
    EXPECT_EQ(Refusal(client, root_.get(), X509_PURPOSE_SSL_CLIENT, now_), "");
    EXPECT_NE(Refusal(client, root_.get(), X509_PURPOSE_SSL_SERVER, now_), "");
    EXPECT_EQ(X509_get_extended_key_usage(client), unsigned{XKU_SSL_CLIENT});
    EXPECT_EQ(X509_get_key_usage(client), unsigned{KU_DIGITAL_SIGNATURE});
    EXPECT_EQ(X509_check_ca(client), 0);
  }
}

TEST_F(CertificateAuthorityTest, ServersHaveAllTheirHosts) {
  const Certificate server =
      Issued(Kind::kServer, {"host0.example.org", "host0", "10.0.0.7", "fd00::7"});
  EXPECT_THAT(UrisAndDnsNames(server.get()), ElementsAre("DNS:host0.example.org", "DNS:host0"));
  for (const char* host : {"host0.example.org", "host0"}) {
    EXPECT_EQ(X509_check_host(server.get(), host, 0, 0, nullptr), 1) << host;
  }
  EXPECT_EQ(X509_check_host(server.get(), "host1", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(server.get(), "10.0.0.7", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(server.get(), "fd00:0::7", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(server.get(), "10.0.0.8", 0), 0);
  EXPECT_EQ(Refusal(server.get(), root_.get(), X509_PURPOSE_SSL_SERVER, now_), "");
  EXPECT_NE(Refusal(server.get(), root_.get(), X509_PURPOSE_SSL_CLIENT, now_), "");
  EXPECT_EQ(X509_get_extended_key_usage(server.get()), unsigned{XKU_SSL_SERVER});
}

TEST_F(CertificateAuthorityTest, AHostMayBeLongerThanACommonName) {
  const std::string host = std::string(60, 'h') + ".example.org";
  const Certificate server = Issued(Kind::kServer, {host});
  EXPECT_EQ(X509_check_host(server.get(), host.c_str(), 0, 0, nullptr), 1);
}

TEST_F(CertificateAuthorityTest, TimesBeginEarlyAndEndAfterTheDays) {
  const auto issued = Issue(Kind::kWorker, {"gpu01"}, 30);
  ASSERT_THAT(issued, IsOk());
  EXPECT_EQ(issued->not_after, now_ + absl::Hours(24 * 30));
  const Certificate worker = std::move(CertificatesOf(issued->certificate_file).at(0));
  const auto refusal = [&](absl::Time time) {
    return Refusal(worker.get(), root_.get(), X509_PURPOSE_SSL_CLIENT, time);
  };
  EXPECT_EQ(refusal(now_ - absl::Minutes(5)), "") << "a clock may be slow";
  EXPECT_EQ(refusal(now_ - absl::Minutes(5) - absl::Seconds(1)), "certificate is not yet valid");
  EXPECT_EQ(refusal(issued->not_after - absl::Seconds(1)), "");
  EXPECT_EQ(refusal(issued->not_after + absl::Seconds(1)), "certificate has expired");
}

TEST_F(CertificateAuthorityTest, TheEndOfAFileIsThatOfItsFirstCertificate) {
  const auto issued = Issue(Kind::kServer, {"host0"}, 30);
  ASSERT_THAT(issued, IsOk());
  const auto end = EndOfCertificate(issued->certificate_file);
  ASSERT_THAT(end, IsOk());
  EXPECT_EQ(*end, issued->not_after) << "that of the authority is later";
  EXPECT_THAT(EndOfCertificate(issued->key_file),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::HasSubstr("has no certificate in PEM form")));
  EXPECT_EQ(EndOfCertificate(dir_ / "missing.pem").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CertificateAuthorityTest, SerialsDiffer) {
  std::set<std::string> serials;
  std::size_t digits = 0;
  for (int i = 0; i < 8; ++i) {
    const auto issued = Issue(Kind::kWorker, {absl::StrCat("gpu", i)});
    ASSERT_THAT(issued, IsOk());
    serials.insert(issued->serial);
    digits = std::max(digits, issued->serial.size());
    EXPECT_LE(issued->serial.size(), 32u);
  }
  EXPECT_EQ(serials.size(), 8u);
  EXPECT_GE(digits, 30u) << "128 bits";
}

TEST_F(CertificateAuthorityTest, AnotherAuthorityIsNotTrusted) {
  ASSERT_THAT(MakeAuthority(dir_ / "other", "pelab CA", 10, now_), IsOk());
  const Certificate other = std::move(CertificatesOf(dir_ / "other/ca.pem").at(0));
  const Certificate worker = Issued(Kind::kWorker, {"gpu01"});
  EXPECT_NE(Refusal(worker.get(), other.get(), X509_PURPOSE_SSL_CLIENT, now_), "");
}

TEST_F(CertificateAuthorityTest, NothingIsOverwritten) {
  const std::string before = Read(authority_ + "/ca.key");
  EXPECT_THAT(MakeAuthority(authority_, "pelab CA", 10, now_),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("ca.key")));
  EXPECT_EQ(Read(authority_ + "/ca.key"), before);

  ASSERT_THAT(Issue(Kind::kWorker, {"gpu01"}), IsOk());
  EXPECT_THAT(Issue(Kind::kClient, {"gpu01"}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("gpu01.key")));
  // If one of the two files is there, the other is not made.
  std::ofstream(out_ + "/gpu02.pem") << "mine";
  EXPECT_THAT(Issue(Kind::kWorker, {"gpu02"}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("gpu02.pem")));
  EXPECT_FALSE(std::filesystem::exists(out_ + "/gpu02.key"));
  EXPECT_EQ(Read(out_ + "/gpu02.pem"), "mine");
}

TEST_F(CertificateAuthorityTest, RefusesNamesThatMeanSomethingElse) {
  for (const std::string name :
       {"", "a b", "a/b", "..", "-a", "_a", "a,URI:pelab://worker/b", "gpu\n01", "é"}) {
    EXPECT_THAT(Issue(Kind::kWorker, {name}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("invalid name \"")))
        << name;
  }
  EXPECT_THAT(Issue(Kind::kClient, {std::string(65, 'a')}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 to 64")));
  EXPECT_THAT(Issue(Kind::kClient, {"a", "b"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unexpected name \"b\"")));
  for (const std::string host : {"", "10.0.0", "10.0.0.256", "host0:7470", "-a", "a..b", "a b",
                                 "*.example.org", "fd00::7::1", "[fd00::7]", "a,IP:10.0.0.1"}) {
    EXPECT_THAT(Issue(Kind::kServer, {"host0", host}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("invalid host \"")))
        << host;
  }
  EXPECT_THAT(Issue(Kind::kServer, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 "a certificate "
                                                 "needs a name"));
  EXPECT_FALSE(std::filesystem::exists(out_)) << "nothing was written";
  for (const std::string& name : {std::string(), std::string(65, 'a'), std::string("a\nb")}) {
    EXPECT_THAT(MakeAuthority(dir_ / "x", name, 10, now_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of an authority")));
  }
}

TEST_F(CertificateAuthorityTest, RefusesDaysThatItCannotGive) {
  for (const int days : {0, -1, kMaxDays + 1}) {
    EXPECT_THAT(Issue(Kind::kWorker, {"gpu01"}, days),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("from 1 to 36500")));
  }
  EXPECT_THAT(Issue(Kind::kWorker, {"gpu01"}, 3651),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("allowed: from 1 to 3650")));
  EXPECT_THAT(Issue(Kind::kWorker, {"gpu01"}, 3650), IsOk());
  EXPECT_THAT(IssueCertificate(authority_, {.names = {"gpu02"}, .days = 1}, out_,
                               now_ + absl::Hours(24 * 3650)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("make another one")));
}

TEST_F(CertificateAuthorityTest, RefusesAFolderThatHoldsNoAuthority) {
  const auto issue = [&](const std::string& folder) {
    return IssueCertificate(folder, {.names = {"gpu01"}}, out_, now_);
  };
  EXPECT_THAT(issue(dir_ / "none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("ca.pem")));
  std::ofstream(authority_ + "/ca.pem") << "no certificate";
  EXPECT_THAT(issue(authority_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("ca.pem has no certificate of an authority")));
  ASSERT_THAT(MakeAuthority(dir_ / "a", "a", 10, now_), IsOk());
  ASSERT_THAT(MakeAuthority(dir_ / "b", "b", 10, now_), IsOk());
  std::filesystem::copy_file(dir_ / "b/ca.key", dir_ / "a/ca.key",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(issue(dir_ / "a"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is not the key of")));
  // A certificate that was issued is no authority.
  const auto worker = IssueCertificate(dir_ / "b", {.names = {"w"}, .days = 1}, out_, now_);
  ASSERT_THAT(worker, IsOk());
  std::filesystem::create_directory(dir_ / "c");
  std::filesystem::copy_file(worker->certificate_file, dir_ / "c/ca.pem");
  std::filesystem::copy_file(worker->key_file, dir_ / "c/ca.key");
  EXPECT_THAT(issue(dir_ / "c"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("no certificate of an authority")));
}

TEST_F(CertificateAuthorityTest, TheOpensslProgramAcceptsThem) {
  const auto worker = Issue(Kind::kWorker, {"gpu01"});
  const auto server = Issue(Kind::kServer, {"host0"});
  ASSERT_THAT(worker, IsOk());
  ASSERT_THAT(server, IsOk());
  const auto verify = [&](const char* purpose, const std::string& file) -> std::optional<int> {
    auto process = Process::Spawn({.argv = {"/usr/bin/openssl", "verify", "-x509_strict", "-CAfile",
                                            authority_ + "/ca.pem", "-purpose", purpose, file}});
    if (!process.ok()) return std::nullopt;
    return process->Wait().code;
  };
  const std::optional<int> accepted = verify("sslclient", worker->certificate_file);
  if (!accepted) GTEST_SKIP() << "needs the openssl program";
  EXPECT_EQ(*accepted, 0);
  EXPECT_EQ(verify("sslserver", server->certificate_file), 0);
  EXPECT_NE(verify("sslserver", worker->certificate_file), 0);
}

}  // namespace
}  // namespace pelab::access
