// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opens the protected packets of a capture with the keys of a file (uet_keys), whichever member of
// the secure domain has sent them. Exception: in server mode, packets from the server stay closed.
#pragma once

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tss/key_file.h"
#include "tss/sd_table.h"
#include "wire/frame.h"

namespace uet {

class CaptureKeys {
 public:
  // Empty, or what is wrong with the file, without any part of a key.
  std::string load(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return "cannot be read";
    std::string text(std::istreambuf_iterator<char>(file), {});
    tss::KeyFile keys;
    std::string problem = tss::parse_key_file(text, keys);
    tss::wipe(std::as_writable_bytes(std::span(text)));
    if (!problem.empty()) return problem;
    // Histories and the active key concern senders: a refusal leaves the key where it opens
    // packets.
    (void)tss::apply(keys, table_, Time{});
    return {};
  }

  // The text of the packet; nothing if it is not protected, or no key opens it. `native`: without
  // UDP.
  std::optional<std::vector<std::byte>> text_of(const wire::ParsedFrame& frame, bool native) {
    const wire::FrameFields& fields = frame.fields;
    const tss::OuterFields outer =
        native
            ? tss::native_fields(fields.source, fields.destination, fields.entropy)
            : tss::udp_fields({fields.source, fields.entropy}, {fields.destination, fields.port});
    std::vector<std::byte> text(frame.packet.size());
    const tss::OpenResult result =
        table_.open(outer, frame.packet, frame.missing > 0, text, Time{});
    if (result.verdict != tss::OpenVerdict::Opened) return {};
    text.resize(result.bytes);
    return text;
  }

 private:
  tss::SdTable table_;
};

}  // namespace uet
