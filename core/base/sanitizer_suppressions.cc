// Built into every program of a sanitizer build, and into no other: what not to report. Distributions ship gRPC, Abseil
// and httplib without instrumentation, so ThreadSanitizer cannot see how they order their accesses, and takes memory that is
// handed from one thread to another inside them for a race. Nothing of this project is named here, but a test's listener:
// httplib's Client::stop() ends in a jump to the unlock of what it locked, which then seems to be the listener's.
// The sanitizers look for these very names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions();

// (A Status counts its references in libabsl_status, but its text is freed by whoever inlined the last Unref.)

// gRPC's resolver keeps what it has parsed of /etc/resolv.conf, fontconfig the fonts that it found.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcares.so\nleak:libfontconfig.so\n";
}

extern "C" const char* __tsan_default_suppressions() {
  return R"(
called_from_lib:libgrpc.so
called_from_lib:libgrpc++.so
called_from_lib:libgpr.so
called_from_lib:libupb.so
called_from_lib:libcares.so
called_from_lib:libcpp-httplib.so
called_from_lib:libssl.so
called_from_lib:libcrypto.so
called_from_lib:libabsl_status.so
called_from_lib:libabsl_statusor.so
called_from_lib:libabsl_strings.so
called_from_lib:libabsl_cord.so
called_from_lib:libabsl_synchronization.so
called_from_lib:libabsl_graphcycles_internal.so
race:libgrpc.so
race:libgrpc++.so
race:libupb.so
race:libabsl_
race:absl::*::Status::Unref
race:^grpc::
race:grpc_core::
race:google::protobuf::internal::
mutex:libabsl_
mutex:pelab::Listener::Leave
deadlock:libgrpc
)";
}
// NOLINTEND(bugprone-reserved-identifier)
