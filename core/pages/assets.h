// The assets that pelab's pages load: Plotly, the chart modules, the style sheets. They are
// embedded in the program, so that no page needs a network. Thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace pelab::pages {

struct Asset {
  std::string_view name;          // "charts.js"
  std::string_view content_type;  // "text/javascript; charset=utf-8"
  std::string_view bytes;         // valid for the program's life
};

// Every asset:
//   plotly.js     Plotly (scatter, heat map, violin and other Cartesian plots), as published
//   charts.js     core/pages/charts, defines `pelabCharts`; needs plotly.js before it
//   base.css      core/pages/style/base.css
//   report.js     core/pages/report, builds the page of `pelab report`; needs both scripts
//   report.css    its style, to be used with base.css
//   dashboard.html, dashboard.css, dashboard.js, icon.svg
//                 the coordinator's pages (core/pages/dashboard)
//   licences.txt  the licenses of the bundled libraries; must accompany every page with plotly.js
//   looks.json    the colors, dashes and markers of series (core/pages/style)
// Only the HTML may contain "</script" or "<!--", so every other asset can be put in a <script>
// element.
std::span<const Asset> Assets();

// The asset of that name, or nullptr.
const Asset* FindAsset(std::string_view name);

}  // namespace pelab::pages
