// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The size of classes (class_sizes.h): first the reader and bad examples, then the tree.
#include "tidy/class_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tidy/source_tree.h"

namespace uet::tidy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Classes that may be larger: {methods, members}.
const LargeClasses kLargeClasses = {};

ClassSize only_class(std::string_view text) {
  const ClassSizes sizes = class_sizes(text);
  EXPECT_TRUE(sizes.balanced) << text;
  EXPECT_THAT(sizes.classes, SizeIs(1)) << text;
  return sizes.classes.empty() ? ClassSize{} : sizes.classes.front();
}

std::string class_with(std::size_t methods, std::size_t members) {
  std::string text = "namespace uet {\nclass Big {\n public:\n";
  for (std::size_t i = 0; i < methods; ++i) text += "  void f" + std::to_string(i) + "();\n";
  for (std::size_t i = 0; i < members; ++i) text += "  int m" + std::to_string(i) + "_ = 0;\n";
  return text + "};\n}\n";
}

Complaints check(std::string_view text, const LargeClasses& known = {}) {
  std::set<std::string> seen;
  return check_classes("a.h", text, known, seen);
}

TEST(TidyClasses, CountsEveryFormOfAMethodOnce) {
  const ClassSize size = only_class(
      "class A : public B<int(int)>, C {\n public:\n  explicit A(int x) : B{x}, c_(x) { f(); }\n"
      "  ~A() override = default;\n  A(const A&) = delete;\n  A& operator=(const A&) = delete;\n"
      "  bool operator()(int) const { return a < b; }\n  bool operator<(const A& other) const;\n"
      "  explicit operator bool() const;\n"
      "  template <class T, int N = (3 > 2)>\n  std::array<T, N> g(T&& t) const noexcept(true);\n"
      "  [[nodiscard]] virtual auto h() -> std::map<int, int> = 0;\n  int g();\n  int g() const;\n"
      "  friend void i(A&);\n  static_assert(sizeof(int) == 4);\n  using J = void (*)(int);\n};");
  EXPECT_THAT(size.methods, ElementsAre("A(const A&)", "A(int x)", "g()", "g(T&&t)", "h()",
                                        "operator bool()", "operator()(int)",
                                        "operator<(const A&other)", "operator=(const A&)", "~A()"));
  EXPECT_EQ(size.members, 0u);
  EXPECT_FALSE(size.is_plain);
}

TEST(TidyClasses, CountsEveryFormOfAMember) {
  const ClassSize size = only_class(
      "struct A {\n  A() {}\n  ~A() {}\n  bool operator==(const A&) const = default;\n"
      "  int a, b;\n  int c{3};\n  std::map<int, std::function<void(int)>> d;\n"
      "  unsigned e : 3 = 0;\n  int f[2][2] = {{1, 2}, {3, 4}};\n  void (*g)(int) = nullptr;\n"
      "  alignas(64) std::atomic<int> h{0};\n  struct iovec i;\n"
      "  static constexpr int kNone = 0;\n  static int none;\n  struct None;\n"
      "  enum class No : int { One, Two };\n  friend class None;\n};\nint A::none{};\n");
  EXPECT_EQ(size.members, 9u);
  EXPECT_TRUE(size.is_plain);
}

TEST(TidyClasses, NamesNestedClassesAndNamespaces) {
  const ClassSizes sizes = class_sizes(
      "#define X {\n#define Y \\\n  {\nextern \"C\" {\nint f(void) { struct L { int a; }; }\n}\n"
      "namespace uet::ses {\nnamespace {\nstruct H { int a; } h{1};\n}\n"
      "class Outer final : Base {\n  struct Inner {\n    void f() {}\n  };\n  Inner inner_;\n"
      "  union {\n    int a;\n    char b;\n  } both_;\n};\n"
      "struct Outer::Later { void f(); };\ntemplate <class T>\nstruct hash<T> { int a; };\n"
      "void Outer::f() { if (a < b) {} }\nstruct tm t{};\nenum { kA };\n}\n");
  EXPECT_TRUE(sizes.balanced);
  std::vector<std::string> names;
  for (const ClassSize& found : sizes.classes) names.push_back(found.name);
  EXPECT_THAT(names, ElementsAre("uet::ses::H", "uet::ses::Outer", "uet::ses::Outer::Inner",
                                 "uet::ses::Outer::(anonymous)", "uet::ses::Outer::Later",
                                 "uet::ses::hash"));
  EXPECT_EQ(sizes.classes[1].members, 2u);
  EXPECT_THAT(sizes.classes[2].methods, ElementsAre("f()"));
  EXPECT_FALSE(class_sizes("class A {").balanced);
  EXPECT_FALSE(class_sizes("class A {}; }").balanced);
}

TEST(TidyClasses, RefusesMoreThanFortyMethods) {
  EXPECT_THAT(check(class_with(40, 0)), IsEmpty());
  EXPECT_THAT(check(class_with(41, 0)), ElementsAre(HasSubstr("uet::Big has 41 methods")));
}

TEST(TidyClasses, RefusesMoreThanThirtyMembersBesideMethods) {
  EXPECT_THAT(check(class_with(1, 30)), IsEmpty());
  EXPECT_THAT(check(class_with(1, 31)), ElementsAre(HasSubstr("31 members")));
  EXPECT_THAT(check(class_with(0, 31)), IsEmpty()) << "plain data";
}

TEST(TidyClasses, RefusesThatALargeClassGrows) {
  EXPECT_THAT(check(class_with(50, 5), {{"uet::Big", {50, 5}}}), IsEmpty());
  EXPECT_THAT(check(class_with(50, 5), {{"uet::Big", {49, 5}}}),
              ElementsAre(HasSubstr("more than")));
  EXPECT_THAT(check(class_with(50, 5), {{"uet::Big", {60, 4}}}),
              ElementsAre(HasSubstr("more than")));
  EXPECT_THAT(check(class_with(40, 5), {{"uet::Big", {50, 5}}}),
              ElementsAre(HasSubstr("take it off")));
}

TEST(TreeClasses, ClassesAreSmall) {
  Complaints complaints;
  std::set<std::string> seen;
  std::size_t files = 0;
  const std::filesystem::path source = UET_SOURCE_DIR;
  for (const char* folder : {"include", "src", "prov", "netsim", "tools", "bench", "examples"}) {
    for (const std::string& file : files_under(source, folder)) {
      if (!is_cpp(file)) continue;
      ++files;
      const Complaints found =
          check_classes(file, read_file(source / file).value_or(""), kLargeClasses, seen);
      complaints.insert(complaints.end(), found.begin(), found.end());
    }
  }
  for (const auto& [name, size] : kLargeClasses) {
    if (!seen.contains(name)) complaints.push_back(name + " is listed and does not exist");
  }
  EXPECT_GT(files, 200u);
  std::string all;
  for (const std::string& complaint : complaints) all += "\n  " + complaint;
  EXPECT_TRUE(complaints.empty()) << all;
}

}  // namespace
}  // namespace uet::tidy
