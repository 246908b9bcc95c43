// SweepsService: files that documents name: own encodings and data.
#include <deque>
#include <map>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/experiment/declaration.h"
#include "core/own_files/own_file.h"
#include "core/rpc/status.h"
#include "core/torchscript/archive.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/sweeps_service.h"
#include "server/service/thread_slot.h"

namespace pelab::service {
namespace {

absl::Status CheckFileHeader(const v1::FileHeader& header) {
  PELAB_RETURN_IF_ERROR(store::CheckSha256(header.sha256()));
  if (header.bytes() >= 1 && header.bytes() <= experiment::kMaxTaskBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a file has ", header.bytes(), " bytes; allowed: ", "1 to ", experiment::kMaxTaskBytes));
}

// OK if the stored file is the announced one, of an encoding or of data.
absl::Status CheckStored(const store::ArtifactFiles& files, const v1::FileHeader& header) {
  const std::string path = files.PathOf(header.sha256()).value_or("");
  if (files.StoredBytes(header.sha256()) != header.bytes()) {
    return absl::NotFoundError(
        absl::StrCat("no file with sha256 ", header.sha256(), " and ", header.bytes(), " bytes"));
  }
  const auto hash = own_files::CheckOwnFile(path);
  if (!hash.ok()) {
    // The path on this host means nothing to the caller.
    absl::string_view why = hash.status().message();
    absl::ConsumePrefix(&why, absl::StrCat(path, ": "));
    return absl::Status(hash.status().code(), why);
  }
  if (hash->sha256 == header.sha256()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the file with sha256 ", header.sha256(), " is damaged"));
}

// OK unless the file is an encoding that declares something else. What data hold is only compared
// by the trainer: a file may have a gigabyte.
absl::Status CheckDeclared(const store::ArtifactFiles& files, const std::string& path,
                           const experiment::Declaration& declaration) {
  if (!std::holds_alternative<experiment::OwnEncoding>(declaration)) return absl::OkStatus();
  const auto of_file =
      torchscript::ReadEncodingFile(files.PathOf(experiment::Sha256Of(declaration)).value_or(""));
  if (of_file.ok() && experiment::ToJson(*of_file) == experiment::ToJson(declaration)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("what the submission says of ", Shorten(path, 100),
                   " is not what the file with this SHA-256 declares; pelab submit reads both"));
}

absl::Status NotStored(const std::string& path, const std::string& sha256) {
  return absl::FailedPreconditionError(absl::StrCat("the file ", Shorten(path, 100), " (SHA-256 ",
                                                    sha256,
                                                    ") is not stored here; pelab submit sends it "
                                                    "first"));
}

}  // namespace

absl::Status SweepsService::Receive(const v1::FileHeader& header,
                                    grpc::ServerReader<v1::PutFileRequest>& reader) {
  PELAB_ASSIGN_OR_RETURN(
      const auto upload,
      parts_.artifacts.Begin(header.sha256(), header.bytes(),
                             store::ArtifactFiles::Room::kMayBeMade, header.offset()));
  v1::PutFileRequest request;
  while (reader.Read(&request)) {
    if (!request.has_chunk()) {
      return absl::InvalidArgumentError("an upload has one header, then chunks");
    }
    if (request.chunk().size() > limits::kFilePieceBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a chunk of a file has at most ", limits::kFilePieceBytes, " bytes"));
    }
    PELAB_RETURN_IF_ERROR(parts_.collector.Write(*upload, request.chunk()));
  }
  if (upload->complete()) return upload->Commit();
  // The stream ended too early: the rest may come later.
  absl::Status status = upload->Commit();
  upload->Keep();
  return status;
}

absl::Status SweepsService::DoPutFile(const grpc::ServerContext& context,
                                      grpc::ServerReader<v1::PutFileRequest>& reader,
                                      v1::PutFileResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  v1::PutFileRequest request;
  if (!reader.Read(&request) || !request.has_header()) {
    return absl::InvalidArgumentError("the first message of an upload must be its header");
  }
  const v1::FileHeader header = request.header();
  PELAB_RETURN_IF_ERROR(CheckFileHeader(header));
  // Until the row is there, nothing else keeps the file.
  const store::ArtifactFiles::FileHold hold(parts_.artifacts, header.sha256());
  response.set_already_there(CheckStored(parts_.artifacts, header).ok());
  if (header.ask() && !response.already_there()) {
    response.set_kept(parts_.artifacts.KeptBytes(header.sha256()));
    return absl::OkStatus();
  }
  if (!response.already_there()) {
    PELAB_RETURN_IF_ERROR(Receive(header, reader));
    PELAB_RETURN_IF_ERROR(CheckStored(parts_.artifacts, header));
  }
  return AppendAndWait(parts_.writer,
                       store::RecordFile{header.sha256(), header.bytes(),
                                         absl::ToUnixMillis(parts_.clock.Wall())},
                       nullptr,
                       caller.Act("Sweeps/PutFile", absl::StrCat("file ", header.sha256())))
      .status();
}

grpc::Status SweepsService::PutFile(grpc::ServerContext* context,
                                    grpc::ServerReader<v1::PutFileRequest>* reader,
                                    v1::PutFileResponse* response) {
  const ThreadSlot seat(uploads_, limits::kFileUploads);
  if (!seat.got()) {
    return rpc::ToGrpc(absl::UnavailableError(absl::StrCat(
        limits::kFileUploads, " files of documents are being uploaded: try again later")));
  }
  grpc::Status status = rpc::ToGrpc(DoPutFile(*context, *reader, *response));
  // As PutArtifact does: the rest of an upload that was answered early is read and ignored.
  std::size_t ignored = 0;
  v1::PutFileRequest request;
  while (ignored < experiment::kMaxTaskBytes && reader->Read(&request)) {
    ignored += request.chunk().size();
  }
  return status;
}

absl::Status SweepsService::KeepFiles(
    const google::protobuf::RepeatedPtrField<v1::Override>& overrides) {
  std::deque<store::ArtifactFiles::FileHold> holds;
  std::map<std::string, std::string> paths;  // by hash
  store::RenewFiles renew{.sha256s = {}, .now = absl::ToUnixMillis(parts_.clock.Wall())};
  for (const v1::Override& override : overrides) {
    if (!override.field().starts_with(experiment::kFileOverride)) continue;
    const auto parsed = experiment::ParseDeclaration(override.value());
    const std::string sha256 = experiment::Sha256Of(parsed.declaration);
    const std::string path = override.field().substr(experiment::kFileOverride.size());
    if (!paths.emplace(sha256, path).second) continue;
    holds.emplace_back(parts_.artifacts, sha256);
    if (!parts_.artifacts.Has(sha256)) return NotStored(paths[sha256], sha256);
    PELAB_RETURN_IF_ERROR(CheckDeclared(parts_.artifacts, path, parsed.declaration));
    renew.sha256s.push_back(sha256);
  }
  if (renew.sha256s.empty()) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                         AppendAndWait(parts_.writer, std::move(renew)));
  const auto& unknown = std::get<store::FilesRenewed>(result).unknown;
  return unknown.empty() ? absl::OkStatus() : NotStored(paths[unknown.front()], unknown.front());
}

}  // namespace pelab::service
