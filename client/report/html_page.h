// A report as one self-contained HTML file: data, Plotly, charts and style. Pure functions:
// thread-safe.
#pragma once

#include <string>

#include "core/render/json.h"

namespace pelab::client {

// JSON that is safe inside a <script> element: no character ends the element, starts a comment or
// breaks a JavaScript line.
std::string ScriptJson(const render::Json& data);

// Escapes `text` for use between tags or in a quoted attribute.
std::string HtmlText(const std::string& text);

// `data` comes from ReportData; `title` is any text.
std::string ReportPage(const std::string& title, const render::Json& data);

}  // namespace pelab::client
