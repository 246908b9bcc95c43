#include "server/http/pages.h"

#include <map>

#include "core/base/sha256.h"
#include "core/base/strings.h"
#include "core/pages/assets.h"
#include "server/http/answer.h"

namespace pelab::http {
namespace {

constexpr char kShell[] = "dashboard.html";  // the only page; its script reads the address

// Built and compressed at the first request.
const std::map<std::string, Page>& Pages() {
  static const auto& pages = *new std::map<std::string, Page>([] {
    std::map<std::string, Page> all;
    for (const pages::Asset& asset : pages::Assets()) {
      const std::string bytes(asset.bytes);
      static auto& compressed = *new std::map<std::string, std::string>();
      const std::string name(asset.name);
      compressed[name] = Gzip(asset.bytes);
      all[name] = {.content_type = std::string(asset.content_type),
                   .etag = Concat("\"", Sha256Hex(bytes).substr(0, 16), "\""),
                   .bytes = asset.bytes,
                   .gzip = compressed[name]};
    }
    return all;
  }());
  return pages;
}

const Page* Find(const std::string& name) {
  const auto found = Pages().find(name);
  return found == Pages().end() ? nullptr : &found->second;
}

}  // namespace

const Page* FindPage(const std::vector<std::string>& path) {
  if (path.empty() || (path.size() == 1 && path[0] == "workers")) return Find(kShell);
  if (path.size() != 2) return nullptr;
  if (path[0] == "sweeps" || path[0] == "jobs") return Find(kShell);
  return path[0] == "assets" ? Find(path[1]) : nullptr;
}

}  // namespace pelab::http
