// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sentences stand on lines of their own in the manual.
#include "settings/param_page.h"

#include <algorithm>
#include <vector>

#include "settings/params.h"

namespace uet::prov {
namespace {

std::vector<ParamText> sorted(bool variables) {
  std::vector<ParamText> texts = param_texts();
  std::erase_if(texts, [&](const ParamText& row) { return row.variable != variables; });
  std::ranges::sort(texts, {}, &ParamText::name);
  return texts;
}

std::string by_sentence(std::string text) {
  for (std::size_t at = 0; (at = text.find(". ", at)) != std::string::npos; ++at) {
    text[at + 1] = '\n';
  }
  return text;
}

std::string items_in_markdown(bool variables) {
  std::string text;
  for (const ParamText& row : sorted(variables)) {
    text += "- `" + (variables ? variable_name(row.name) : row.name) + "` (" + row.range +
            "; default: " + row.preset + "). " + row.help + "\n";
  }
  return text;
}

}  // namespace

std::string tuning_in_manual() {
  std::string text = kManualBegin;
  for (const ParamText& row : sorted(false)) {
    text += ".TP\n.BR " + row.name + " \" (" + row.range + "; default: " + row.preset + ")\"\n" +
            by_sentence(row.help) + "\n";
  }
  return text + kManualEnd;
}

std::string parameters_in_markdown() {
  return "# Parameters\n\n## Variables\n" + items_in_markdown(true) +
         "\n## Names of FI_UET_TUNING\n" + items_in_markdown(false);
}

}  // namespace uet::prov
