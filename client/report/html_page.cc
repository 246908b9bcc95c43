#include "client/report/html_page.h"

#include <string_view>

#include "core/base/strings.h"
#include "core/pages/assets.h"

namespace pelab::client {
namespace {

std::string_view Asset(std::string_view name) {
  const pages::Asset* asset = pages::FindAsset(name);
  return asset == nullptr ? "" : asset->bytes;
}

}  // namespace

std::string ScriptJson(const render::Json& data) {
  const std::string json =
      data.dump(-1, ' ', /*ensure_ascii=*/false, render::Json::error_handler_t::replace);
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  // Outside strings, JSON has none of these characters.
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const std::string_view rest = std::string_view(json).substr(i, 3);
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else if (rest == "\xE2\x80\xA8" || rest == "\xE2\x80\xA9") {  // line and paragraph separators
      out += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

std::string HtmlText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string ReportPage(const std::string& title, const render::Json& data) {
  // The content security policy stops the page from loading anything, whatever its data contains.
  return Concat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"generator\" content=\"pelab " PELAB_VERSION "\">\n<title>",
      HtmlText(title), "</title>\n<style>\n", Asset("base.css"), Asset("report.css"),
      "</style>\n</head>\n<body>\n<main class=\"page\" id=\"report\"><noscript>This report draws "
      "its tables and charts with JavaScript, which is turned off here. Its data is in this file, "
      "as JSON.</noscript></main>\n"
      "<script type=\"application/json\" id=\"report-data\">",
      ScriptJson(data), "</script>\n<script type=\"text/plain\" id=\"licences\">\n",
      Asset("licences.txt"), "</script>\n<script>\n", Asset("plotly.js"), "</script>\n<script>\n",
      Asset("charts.js"), "</script>\n<script>\n", Asset("report.js"),
      "</script>\n</body>\n</html>\n");
}

}  // namespace pelab::client
