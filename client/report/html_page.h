// A report as one HTML file that needs nothing else: data, Plotly, charts, style. Pure functions:
// thread-safe.
#pragma once

#include <string>

#include "core/render/json.h"

namespace pelab::client {

// JSON that can stand in a <script> element: nothing in it ends the element, begins a comment or
// breaks a line of JavaScript.
std::string ScriptJson(const render::Json& data);

// `text` between tags or in a quoted attribute.
std::string HtmlText(const std::string& text);

// `data` is ReportData's, `title` any text.
std::string ReportPage(const std::string& title, const render::Json& data);

}  // namespace pelab::client
