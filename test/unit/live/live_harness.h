// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A run-time directory of its own for each test, and a page in it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "live/page_reader.h"
#include "live/page_writer.h"

namespace uet::live {

class LiveTest : public testing::Test {
 protected:
  LiveTest() {
    std::string pattern = testing::TempDir() + "uet_live_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    const char* const before = std::getenv("XDG_RUNTIME_DIR");
    if (before != nullptr) before_ = before;
    ::setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
  }
  ~LiveTest() override {
    std::filesystem::remove_all(directory_);
    if (before_.empty()) {
      ::unsetenv("XDG_RUNTIME_DIR");
    } else {
      ::setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    }
  }

  static std::unique_ptr<PageWriter> make_page() {
    const CounterText texts[] = {{"pds_apples", "apples eaten", true}, {"nic_pears", "pears sent"}};
    std::string why;
    auto page = PageWriter::create({"eth0", "udp", "10.0.0.1:4793"}, texts, why);
    EXPECT_NE(page, nullptr) << why;
    return page;
  }
  // Overwrites a part of the file.
  template <class T>
  static void spoil(const std::string& file, std::size_t at, const T& value) {
    FILE* const open = std::fopen(file.c_str(), "r+b");
    ASSERT_NE(open, nullptr);
    std::fseek(open, static_cast<long>(at), SEEK_SET);
    std::fwrite(&value, sizeof value, 1, open);
    std::fclose(open);
  }
  static std::string reason(const std::string& file) {
    std::string why;
    EXPECT_FALSE(read_page(file, why));
    return why;
  }

  std::string directory_;

 private:
  std::string before_;
};

}  // namespace uet::live
