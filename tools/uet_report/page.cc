// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_report/page.h"

#include "uet_report/svg.h"

namespace uet::report {

namespace {

// Two plots beside each other from 1,000 pixels on, one on a page that is narrower or printed.
constexpr const char* kStyle =
    "body{font:15px sans-serif;margin:1em auto;max-width:1240px;color:#111;background:#fff}"
    "section{display:grid;grid-template-columns:1fr 1fr;gap:1em}"
    "h2{grid-column:1/-1;font-size:18px;border-bottom:1px solid #999}"
    "svg{width:100%;font:11px sans-serif}.title{font-size:14px;font-weight:bold}"
    ".grid{stroke:#ddd}.spread{stroke:#111;stroke-width:2}"
    ".target{stroke:#d55e00;stroke-dasharray:5 3}.none{color:#555}"
    "@media (max-width:999px){section{display:block}}"
    "@media print{body{margin:0;-webkit-print-color-adjust:exact;print-color-adjust:exact}"
    "section{display:block}svg{break-inside:avoid;max-width:17cm}}";

}  // namespace

std::string page(const std::string& title, const std::vector<Section>& sections) {
  std::string out =
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head>"
      "<meta charset=\"utf-8\"/><title>" +
      escape(title) + "</title><style>" + kStyle + "</style></head><body>\n<h1>" + escape(title) +
      "</h1>\n";
  for (const Section& section : sections) {
    out += "<section><h2>" + escape(section.heading) + "</h2>\n";
    for (const std::string& figure : section.figures) out += "<div>" + figure + "</div>\n";
    out += "</section>\n";
  }
  return out + "</body></html>\n";
}

}  // namespace uet::report
