// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "wireshark/tshark.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace uet::wire {

namespace {

using nlohmann::json;

template <class T>
void put(std::ofstream& out, const T& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

// A field may stand at any depth of the tree, and more than once.
void collect(const json& node, ShownFields& shown) {
  if (node.is_array()) {
    for (const json& item : node) collect(item, shown);
  }
  if (!node.is_object()) return;
  for (const auto& [key, value] : node.items()) {
    if (value.is_string()) {
      shown[key].push_back(value.get<std::string>());
    } else if (value.is_array() && !value.empty() && value[0].is_string()) {
      for (const json& item : value) shown[key].push_back(item.get<std::string>());
    } else {
      collect(value, shown);
    }
  }
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string file = directory + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

}  // namespace

Capture::Capture() {
  std::string pattern = "/tmp/uet_wireshark_XXXXXX";
  const int fd = ::mkstemp(pattern.data());
  if (fd < 0) throw std::runtime_error("no temporary file in /tmp");
  ::fchmod(fd, 0644);  // tshark may be another user's
  ::close(fd);
  file_ = pattern;
  std::ofstream out(file_, std::ios::binary);
  put(out, std::array<std::uint32_t, 6>{0xA1B2C3D4, 4U << 16 | 2, 0, 0, 65535, 1});
}

Capture::~Capture() { ::unlink(file_.c_str()); }

int Capture::add_frame(const Bytes& frame, std::size_t captured) {
  std::ofstream out(file_, std::ios::binary | std::ios::app);
  const auto whole = static_cast<std::uint32_t>(frame.size());
  const auto kept = static_cast<std::uint32_t>(std::min(captured, frame.size()));
  put(out,
      std::array<std::uint32_t, 4>{0, static_cast<std::uint32_t>(frames_ * 1000), kept, whole});
  out.write(reinterpret_cast<const char*>(frame.data()), kept);
  return ++frames_;
}

int Capture::add(const FrameFields& fields, const Bytes& packet, const FrameFormat& format) {
  const Slice piece{packet.data(), static_cast<std::uint32_t>(packet.size())};
  Bytes frame(kMaxFrameHeaderBytes);
  frame.resize(write_frame_headers(frame.data(), format, fields, std::span(&piece, 1)));
  const auto trailer = frame_trailer(frame, std::span(&piece, 1));
  frame.insert(frame.end(), packet.begin(), packet.end());
  if (format.crc) frame.insert(frame.end(), trailer.begin(), trailer.end());
  return add_frame(frame);
}

FrameFields between(std::uint8_t from, std::uint8_t to, std::uint16_t source_port,
                    std::uint16_t destination_port) {
  FrameFields fields;
  fields.source.bytes = {10, 0, 0, from};
  fields.destination.bytes = {10, 0, 0, to};
  fields.entropy = source_port;
  fields.port = destination_port;
  return fields;
}

FrameFields between_ipv6(std::uint8_t from, std::uint8_t to) {
  FrameFields fields = between(from, to);
  fields.source.bytes = {0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, from};
  fields.destination.bytes = {0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, to};
  fields.source.is_ipv6 = fields.destination.is_ipv6 = true;
  return fields;
}

const std::string& tshark_program() {
  static const std::string program = find_program("tshark");
  return program;
}

namespace {
const char* const kDissector = UET_SOURCE_DIR "/scripts/wireshark/uet.lua";

// Wireshark 4.4 runs no Lua script for root. Returns the command that starts tshark as another
// user; empty if that user cannot read the dissector.
const std::string& as_user() {
  static const std::string prefix = [] {
    const std::string user =
        "env HOME=/tmp setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs ";
    const std::string question = user + "test -r " + kDissector + " 2>/dev/null";
    return ::geteuid() == 0 && std::system(question.c_str()) == 0 ? user : "";
  }();
  return prefix;
}
}  // namespace

std::string tshark(const std::string& options) {
  return tshark_alone(options + " -X lua_script:" + kDissector);
}

std::string tshark_alone(const std::string& options) {
  const std::string errors = Capture().file() + ".err";
  const std::string command = as_user() + tshark_program() + " " + options + " 2>" + errors;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::string output;
  std::array<char, 65536> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  std::ifstream in(errors);
  std::string complaints;
  for (std::string line; std::getline(in, line);) {
    // tshark says this whenever it is run by root.
    if (!line.starts_with("Running as user")) complaints += line + "\n";
  }
  ::unlink(errors.c_str());
  if (status != 0 || !complaints.empty()) throw std::runtime_error(command + "\n" + complaints);
  return output;
}

std::vector<ShownFields> shown_fields(const Capture& capture, const std::string& options) {
  const std::string text =
      tshark("-2 -r " + capture.file() + " -T json --no-duplicate-keys " + options);
  std::vector<ShownFields> all;
  for (const json& packet : json::parse(text)) {
    collect(packet["_source"]["layers"], all.emplace_back());
  }
  return all;
}

std::vector<std::string> info_lines(const Capture& capture, const std::string& options) {
  std::istringstream text(tshark("-r " + capture.file() + " -T fields -e _ws.col.Info " + options));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace uet::wire
