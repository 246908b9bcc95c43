// Reports that sanitizers should suppress. Built into every program of a sanitizer build, and into
// no other. Distributions ship gRPC, Abseil and httplib without instrumentation, so ThreadSanitizer
// cannot see how these libraries order their accesses, and reports a race when they hand memory
// from one thread to another. Two entries name code of this project, which calls httplib's
// Client::stop(): the listener of a test, and what sends notifications. That function ends with a
// jump (a tail call) into the function that unlocks its mutex. ThreadSanitizer then reports this
// unlock as the caller's.
// The sanitizers look for exactly these names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_suppressions();

// Status::Unref is listed because the references of a Status are counted in libabsl_status, which
// is not instrumented. The text is freed in the program's code, into which the last Unref is
// inlined.

// gRPC's resolver keeps the parsed /etc/resolv.conf, and fontconfig keeps the fonts it found.
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
mutex:pelab::notify::HttpPost
deadlock:libgrpc
)";
}

// A report is suppressed by the functions of either access. Those of the earlier one are known only
// as far back as the history of its thread reaches. Without this, the history of a busy thread of
// gRPC was too short for the entry ^grpc::, which covers a virtual call on the reactor of a stream
// right before another thread deletes it.
extern "C" const char* __tsan_default_options() { return "history_size=5"; }
// NOLINTEND(bugprone-reserved-identifier)
