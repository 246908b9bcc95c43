// What the pages of pelab load: Plotly, the chart modules, the style sheet; in this program itself, so
// that no page needs a network.
#pragma once

#include <span>
#include <string_view>

namespace pelab::pages {

struct Asset {
  std::string_view name;          // "charts.js"
  std::string_view content_type;  // "text/javascript; charset=utf-8"
  std::string_view bytes;         // for the program's life
};

// Every asset:
//   plotly.js     Plotly (scatter, heat map, violin and other cartesian plots), as it is published
//   charts.js     core/pages/charts, defines `pelabCharts`; needs plotly.js before it
//   base.css      core/pages/style/base.css
//   report.js     core/pages/report, builds the page of `pelab report`; needs both scripts before it
//   report.css    its style, beside base.css
//   dashboard.html, dashboard.css, dashboard.js, icon.svg  the coordinator's pages (core/pages/dashboard)
//   licences.txt  the licences of what is bundled; goes with every page that has plotly.js
//   claims.json   the paper's claims and how they are judged (docs/sweeps/verdict)
// None of them, but for the HTML, has "</script" or "<!--" in it, so that they can stand in a <script> element.
std::span<const Asset> Assets();

// nullptr where there is none of that name.
const Asset* FindAsset(std::string_view name);

}  // namespace pelab::pages
