// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules that the tree itself keeps: layers, purity of the core, test mirror, rule coverage, and
// what the plug-in shows to the outside. Each check is first shown a bad example (Tidy*), so that
// it is known to complain, and then the tree (Tree*).
#include "tidy/tidy_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "tidy/conformance.h"
#include "tidy/law_book.h"
#include "tidy/source_tree.h"

namespace uet::tidy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const fs::path kSource = UET_SOURCE_DIR;

// src/<module>/<file>.cc without a unit test of its own, and why.
const std::map<std::string, std::string> kNoUnitTest = {};
// test/unit/<module>/<file>_test.cc without a source of that name, and why.
const std::map<std::string, std::string> kNoSource = {
    {"test/unit/pds/pdc_recovery_test.cc", "losses found without knowing paths: loss_recovery.cc"},
    {"test/unit/pds/pdc_silence_test.cc",
     "time-outs and slow peers: loss_recovery.cc, retransmit.h"},
    {"test/unit/pds/provisional_test.cc", "the NO_RESPONSE part of ack_intake.cc"},
    {"test/unit/pds/transmission_test.cc", "one transmission of a packet: send_side.cc"},
    {"test/unit/pds/sequences_test.cc", "two Managers and a lossy wire between them"},
    {"test/unit/cms/nscc_slow_way_test.cc",
     "nscc.cc on ways that are slower than the interface, CMS-724"},
    {"test/unit/cms/nscc_pause_test.cc", "nscc.cc after a pause, CMS-725"},
    {"test/unit/cms/nscc_example_test.cc",
     "nscc.cc on the derived values and examples of CMS 2.1, 2.6"},
    {"test/unit/pds/failure_test.cc", "the failure of a PDC: pdc.cc and send_side.cc"},
    {"test/unit/pds/dead_peer_test.cc", "the end of a process of this host: pdc.cc"},
    {"test/unit/cm/handshake_test.cc", "connections.cc and listener.cc over a lossy wire"},
    {"test/unit/nic/xdp/pdc_guard_test.cc", "guard/pdc_guard.bpf.h in the XDP program"},
    {"test/unit/nic/local_neighbour_test.cc", "local.cc beside processes that break the rules"},
    {"test/unit/pds/give_way_test.cc", "PDCs that close in a shortage: admission.cc and pdc.cc"},
    {"test/unit/probe/probe_test.cc", "tools/uet_probe"},
    {"test/unit/job/client_test.cc", "tools/uet_job"},
    {"test/unit/job/server_test.cc", "tools/uet_job"},
    {"test/unit/job/hosts_test.cc", "tools/uet_run"},
    {"test/unit/job/order_test.cc", "tools/uet_run"},
    {"test/unit/view/change_test.cc", "tools/live_view"},
    {"test/unit/view/domain_test.cc", "tools/live_view"},
    {"test/unit/view/json_test.cc", "tools/live_view"},
    {"test/unit/view/words_test.cc", "tools/live_view"},
    {"test/unit/exporter/dashboard_test.cc", "tools/uet_exporter/grafana.json"},
    {"test/unit/exporter/metrics_test.cc", "tools/uet_exporter"},
    {"test/unit/exporter/server_test.cc", "tools/uet_exporter"},
    {"test/unit/view/model_test.cc", "tools/uet_top"},
    {"test/unit/view/sample_test.cc", "tools/uet_top"},
    {"test/unit/view/table_test.cc", "tools/uet_top"},
    {"test/unit/view/text_test.cc", "tools/uet_top"},
    {"test/unit/view/report_test.cc", "tools/uet_stats"},
    {"test/unit/view/report_page_test.cc", "tools/uet_report"},
    {"test/unit/view/trace_captures_test.cc", "tools/uet_trace"},
    {"test/unit/view/trace_events_test.cc", "tools/uet_trace"},
    {"test/unit/view/trace_why_test.cc", "tools/uet_trace"},
    {"test/unit/fep/trace_test.cc", "what the parts of a FEP write to base/trace.h"},
    {"test/unit/doctor/machine_test.cc", "tools/uet_doctor"},
    {"test/unit/doctor/security_test.cc", "tools/uet_doctor"},
    {"test/unit/copy/protocol_test.cc", "tools/uet_copy"},
    {"test/unit/keyd/agent_test.cc", "tools/uet_keyd"},
    {"test/unit/keyd/schedule_test.cc", "tools/uet_keyd"},
    {"test/unit/keyd/store_test.cc", "tools/uet_keyd"},
    {"test/unit/pds/pdc_silence_test.cc",
     "the time-outs of loss_recovery.cc while a peer is silent"},
    {"test/unit/pds/forged_ack_test.cc", "the ACK checks of ack_intake.cc"},
    {"test/unit/pds/stranger_test.cc",
     "what admission.cc, demultiplex.cc and pdc*.cc give strangers"},
    {"test/unit/pds/open_close_test.cc", "both ends of a PDC opening and closing"},
    {"test/unit/pds/return_direction_test.cc", "PDS section 20: read data and their ACKs"},
    {"test/unit/ses/multi_receive_test.cc", "the multi-receive part of receiver.cc"},
    {"test/unit/ses/datagram_test.cc", "datagrams at initiator.cc and target.cc"},
    {"test/unit/ses/rudi_test.cc", "RUDI at initiator.cc and rma_target.cc"},
    {"test/unit/ses/peek_test.cc", "the peek and claim part of receiver.cc"},
    {"test/unit/ses/receive_owned_test.cc", "the part of receiver.cc for a ReceiveOwner"},
    {"test/unit/ses/receive_rendezvous_test.cc", "rendezvous_target.cc between two Ses objects"},
    {"test/unit/ses/target_deferrable_test.cc", "deferred_receives.cc between two Ses objects"},
    {"test/unit/ses/shared_receive_test.cc", "the shared queue part of receiver.cc"},
    {"test/unit/ses/target_error_test.cc", "IE and MSG_ERROR at target.cc and receiver.cc"},
    {"test/unit/ses/target_job_test.cc", "jobs and addressing at target.cc and rma_target.cc"},
    {"test/unit/wire/reserved_test.cc", "checks the reserved bits of every header"},
    {"test/unit/wire/vectors_test.cc", "checks the whole module against test/vectors"},
};

// "prov/params" for a file of that name in prov/uet or one of its folders.
bool is_in_provider(const std::string& stem) {
  if (!stem.starts_with("prov/")) return false;
  for (const char* folder :
       {"", "settings/", "objects/", "calls/", "hmem/", "security/", "submission/", "process/"}) {
    const std::string file = std::string("prov/uet/") + folder + stem.substr(5);
    if (fs::exists(kSource / (file + ".cc")) || fs::exists(kSource / (file + ".h"))) return true;
  }
  return false;
}

std::string read(const fs::path& path) {
  const std::optional<std::string> text = read_file(path);
  EXPECT_TRUE(text.has_value()) << path;
  return text.value_or("");
}

std::vector<std::string> files_under(const std::string& directory) {
  return tidy::files_under(kSource, directory);
}

std::vector<std::string> cpp_files(std::initializer_list<const char*> directories) {
  std::vector<std::string> files;
  for (const char* directory : directories) {
    for (std::string& file : files_under(directory)) {
      if (is_cpp(file)) files.push_back(std::move(file));
    }
  }
  return files;
}

// Standard output of a command; the test fails if the command does.
std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return output;
  }
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

std::string joined(const Complaints& complaints) {
  std::string text;
  for (const std::string& complaint : complaints) text += "\n  " + complaint;
  return text;
}

void expect_clean(const Complaints& complaints) {
  EXPECT_TRUE(complaints.empty()) << joined(complaints);
}

void append(Complaints& to, const Complaints& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Quoted archive paths for nm; built with ':' between them.
std::string core_archives() {
  std::istringstream stream(UET_CORE_ARCHIVES);
  std::string quoted;
  for (std::string archive; std::getline(stream, archive, ':');) quoted += " '" + archive + "'";
  return quoted;
}

constexpr bool kSanitized = sizeof(UET_SANITIZERS) > 1;

// --- bad examples -------------------------------------------------------------------------------

TEST(TidyText, CommentsAndStringsAreNotCode) {
  EXPECT_EQ(without_comments_and_strings("a /* b\n */ c // d\ne(\"f\\\"g\", 'h', 1'000)"),
            "a  \n c  \ne( ,  , 1'000)");
  EXPECT_EQ(without_comments_and_strings("x(R\"(exit( \")\" ) y"), "x(  ) y");
}

TEST(TidyIncludes, RefusesARoomAbove) {
  EXPECT_THAT(check_includes("src/pds/pdc.cc", "#include \"uet/ses/api.h\"\n"),
              ElementsAre(HasSubstr("may not use module 'ses'")));
  EXPECT_THAT(check_includes("src/cms/ccc.h", "  #  include <uet/pds/api.h>  // why\n"),
              ElementsAre(HasSubstr("may not use module 'pds'")));
  EXPECT_THAT(check_includes("src/fep/fep.cc", "#include \"nic/udp.h\"\n"),
              ElementsAre(HasSubstr("only the NIC interface")));
  EXPECT_THAT(check_includes("src/cms/ccc.h", "#include \"pds/pdc.h\"\n"),
              ElementsAre(HasSubstr("may not use module 'pds'")));
  EXPECT_THAT(check_includes("src/ses/match.cc", "#include \"../pds/pdc.h\"\n"), SizeIs(1));
  EXPECT_THAT(check_includes("include/uet/pds/api.h", "#include \"base/slab.h\"\n"),
              ElementsAre(HasSubstr("only one another")));
  EXPECT_THAT(check_includes("src/tunnel/x.cc", ""), ElementsAre(HasSubstr("unknown")));
}

TEST(TidyIncludes, RefusesImpureHeadersInTheCore) {
  for (const char* header : {"sys/socket.h", "unistd.h", "thread", "mutex", "iostream"}) {
    const std::string line = std::string("#include <") + header + ">\n";
    EXPECT_THAT(check_includes("src/ses/target.cc", line), SizeIs(1)) << header;
    EXPECT_THAT(check_includes("include/uet/nic/nic.h", line), SizeIs(1)) << header;
    EXPECT_THAT(check_includes("src/nic/udp.cc", line), IsEmpty()) << header;
  }
}

TEST(TidyIncludes, RefusesLibfabricBelowTheGlue) {
  EXPECT_THAT(check_includes("src/nic/udp.cc", "#include <rdma/fabric.h>\n"), SizeIs(1));
  EXPECT_THAT(check_includes("prov/uet/objects/domain.h", "#include <rdma/fabric.h>\n"), IsEmpty());
}

TEST(TidyIncludes, RefusesOpensslOutsideTss) {
  EXPECT_THAT(check_includes("src/pds/pdc.cc", "#include <openssl/evp.h>\n"), SizeIs(1));
  EXPECT_THAT(check_includes("src/tss/kdf.cc", "#include <openssl/evp.h>\n"), IsEmpty());
  EXPECT_THAT(check_includes("src/tss/x.cc", "#include \"nic/udp.h\"\n"),
              ElementsAre(HasSubstr("only the NIC interface")));
}

TEST(TidyIncludes, AllowsRoomsBelow) {
  EXPECT_THAT(check_includes("src/pds/pdc.cc",
                             "#include \"pds/pdc.h\"\n#include \"cms/ccc.h\"\n"
                             "#include <vector>\n"),
              IsEmpty());
}

TEST(TidySymbols, RefusesWhatIsNotPure) {
  for (const char* symbol :
       {"clock_gettime", "socket", "getenv", "rand", "getrandom", "pthread_mutex_lock", "exit",
        "abort", "printf", "std::chrono::_V2::steady_clock::now()", "std::cout", "RAND_bytes",
        "std::random_device::_M_getval()", "std::thread::_M_start_thread()"}) {
    EXPECT_THAT(check_core_symbols(std::string("                 U ") + symbol + "\n", "", false),
                ElementsAre(HasSubstr(symbol)));
  }
}

TEST(TidySymbols, AllowsPureOnesAndThoseOfOtherArchives) {
  EXPECT_THAT(check_core_symbols("a.o:\n                 U memcpy\n"
                                 "                 U operator new(unsigned long)\n"
                                 "                 U EVP_CIPHER_fetch\n"
                                 "                 U uet::wire::parse(int)\n",
                                 "0000000000000010 T uet::wire::parse(int)\n", false),
              IsEmpty());
  EXPECT_THAT(check_core_symbols("                 U __asan_init\n", "", true), IsEmpty());
  EXPECT_THAT(check_core_symbols("                 U __asan_init\n", "", false), SizeIs(1));
}

TEST(TidyCalls, RefusesOutputAndExit) {
  for (const char* code : {"printf(\"x\");", "std::cout << 1;", "  exit (1);", "::abort();",
                           "std::fprintf(stderr, \"x\");", "puts(\"x\");", "std::exit(0);"}) {
    EXPECT_THAT(check_calls("src/a.cc", code), SizeIs(1)) << code;
  }
  EXPECT_THAT(check_calls("src/a.cc",
                          "// exit(1)\nstd::snprintf(b, n, \"exit(1)\"); on_exit(1);\n"
                          "virtual void abort(PdcId pdc) = 0;"),
              IsEmpty());
}

TEST(TidyLength, RefusesLongFiles) {
  EXPECT_THAT(check_length("a.cc", std::string(kMaxLines, '\n')), IsEmpty());
  EXPECT_THAT(check_length("a.cc", std::string(kMaxLines + 1, '\n')), SizeIs(1));
}

TEST(TidySpdx, RefusesFilesWithoutLicenceLine) {
  const std::string line = "// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only\n";
  EXPECT_THAT(check_spdx("a.cc", line), IsEmpty());
  EXPECT_THAT(check_spdx("a.cc", "\n" + line), SizeIs(1));
  EXPECT_THAT(check_spdx("run", "#!/bin/bash\n#" + line), IsEmpty());
  EXPECT_THAT(check_spdx("a.h", ""), SizeIs(1));
}

TEST(TidyLeftovers, RefusesNotesToSelf) {
  EXPECT_THAT(check_leftovers("a.cc",
                              "// TO"
                              "DO: later\n"),
              SizeIs(1));
  EXPECT_THAT(check_leftovers("a.cc", "int TODOS;\n"), IsEmpty());
}

TEST(TidyPlugIn, RefusesExtraExports) {
  EXPECT_THAT(check_exports("0000000000001000 T fi_prov_ini\n"), IsEmpty());
  EXPECT_THAT(check_exports("0000000000001000 T fi_prov_ini\n0000000000002000 W uet::x()\n"),
              ElementsAre("exports uet::x()"));
  EXPECT_THAT(check_exports(""), SizeIs(1));
}

TEST(TidyPlugIn, RefusesDestructorsAtTheEndOfTheProcess) {
  EXPECT_THAT(check_destructors("                 w __cxa_finalize@GLIBC_2.2.5\n"
                                "                 U memcpy@GLIBC_2.14\n"),
              IsEmpty());
  EXPECT_THAT(check_destructors("                 U __cxa_atexit@GLIBC_2.2.5\n"), SizeIs(1));
  EXPECT_THAT(check_destructors("                 U atexit\n"), SizeIs(1));
  EXPECT_THAT(check_destructors(""), SizeIs(1));
}

TEST(TidyPlugIn, RefusesExtraLibraries) {
  const std::string libc = " 0x01 (NEEDED)  Shared library: [libc.so.6]\n";
  EXPECT_THAT(check_needed(libc, false), IsEmpty());
  EXPECT_THAT(check_needed(libc + " 0x01 (NEEDED)  Shared library: [libpcap.so.0.8]\n", false),
              ElementsAre("needs libpcap.so.0.8"));
  EXPECT_THAT(check_needed("", false), SizeIs(1));
}

TEST(TidyRules, NamedByTheTestTheCommentAboveAndItsName) {
  Citations citations;
  add_citations(
      "test/unit/pds/a_test.cc",
      "// PDS-1: the head names nothing\n#include <x>\n// SES-115, WIRE 2.3\n"
      "TEST(TxWindow, Pds40_Third4096) {\n  f();  // PDS-201\n}\n"
      "// PDS-7 belongs to no test\nint x;\n"
      "TEST_F(A, Ses117And118_Wire310) { f(); }\n// WIRE 3.11.\nTEST_P(A,\n       B) {\n}\n",
      citations);
  const Citation third{"test/unit/pds/a_test.cc", "TxWindow.Pds40_Third4096"};
  EXPECT_THAT(citations["PDS-40"], ElementsAre(third));
  EXPECT_THAT(citations["PDS-201"], ElementsAre(third));
  EXPECT_THAT(citations["SES-115"], ElementsAre(third));
  EXPECT_THAT(citations["WIRE 2.3"], ElementsAre(third));
  EXPECT_THAT(citations["SES-118"],
              ElementsAre(Citation{"test/unit/pds/a_test.cc", "A.Ses117And118_Wire310"}));
  EXPECT_THAT(citations["WIRE 3.11"], ElementsAre(Citation{"test/unit/pds/a_test.cc", "A.B"}));
  EXPECT_EQ(citations.size(), 8U);  // those, SES-117 and WIRE 3.10
}

TEST(TidyRules, NamedByAFileOfChecks) {
  Citations citations;
  add_citations("test/sim/oracles.cc", "// head\n  complain(\"PDS-34: above 0\");\n", citations);
  EXPECT_THAT(citations["PDS-34"], ElementsAre(Citation{"test/sim/oracles.cc", ""}));
}

TEST(TidyRules, NamedByTheFamilyAndNotByItsSections) {
  Citations citations;
  add_citations("test/a_test.cc",
                "// head\nTEST(A, Cms2_3_Section) { f(); }\nTEST(A, Cms150_Tss4And5) { f(); }\n"
                "TEST(A, Pds52_4096Psns) { f(); }  // CMS-420, CMS 2.3\n",
                citations);
  std::vector<RuleName> names;
  for (const auto& [rule, tests] : citations) names.push_back(rule);
  EXPECT_THAT(names, ElementsAre("CMS-150", "CMS-420", "PDS-52", "TSS-4", "TSS-5"));
}

TEST(TidyRules, ExceptionsRefuseLinesWithoutReason) {
  const Exceptions exceptions = parse_exceptions(
      "PDS-4 there is nothing to see\nSES-5 open: tests\nTSS-1 to TSS-3 not offered yet\n");
  EXPECT_THAT(exceptions.complaints, IsEmpty());
  EXPECT_EQ(exceptions.not_applicable.at("PDS-4"), "there is nothing to see");
  EXPECT_EQ(exceptions.open.at("SES-5"), "tests");
  EXPECT_EQ(exceptions.not_applicable.at("TSS-2"), "not offered yet");
  EXPECT_EQ(exceptions.not_applicable.size(), 4U);
  EXPECT_THAT(parse_exceptions("PDS-4\nPDS-5 short\n").complaints, SizeIs(2));
  EXPECT_THAT(parse_exceptions("PDS-4 a long reason\nPDS-4 open: another\n").complaints, SizeIs(1));
  EXPECT_THAT(parse_exceptions("TSS-3 to TSS-1 a long reason\n").complaints, SizeIs(1));
  EXPECT_THAT(parse_exceptions("TSS-3 to PDS-4 a long reason\n").complaints, SizeIs(1));
}

// A law book of PDS-3, PDS-4 and PDS-5 in the chapter PDS 2, which has a section PDS 2.1.
LawBook small_book() {
  std::string text =
      "## <a id=\"pds-section-2\"></a>PDS 2: Part\n"
      "### <a id=\"pds-section-2.1\"></a>PDS 2.1: Section\n";
  for (const char* n : {"3", "4", "5"}) {
    text += std::string("#### <a id=\"pds-") + n + "\"></a>PDS-" + n + ": x" + n +
            "\n*required (UET 3.5), our choice*\n\nA sentence.\n";
  }
  LawBook book;
  add_spec("docs/spec/pds.md", text, book);
  return book;
}

TEST(TidyLawBook, HoldsRulesAndSections) {
  LawBook book = small_book();
  add_spec("docs/spec/wire.md", "### <a id=\"wire-section-2.3\"></a>WIRE 2.3: ACK\n| a |\n", book);
  EXPECT_THAT(book.complaints, IsEmpty());
  ASSERT_THAT(book.rules, SizeIs(4));
  EXPECT_EQ(book.rules[0].name, "PDS-3");
  EXPECT_EQ(book.rules[0].title, "x3");
  EXPECT_EQ(book.rules[0].chapter, "Part");
  EXPECT_EQ(book.rules[0].link, "pds.md#pds-3");
  EXPECT_EQ(book.rules[3].name, "WIRE 2.3");
  EXPECT_THAT(book.citable, testing::UnorderedElementsAre("PDS 2", "PDS 2.1", "PDS-3", "PDS-4",
                                                          "PDS-5", "WIRE 2.3"));
}

TEST(TidyLawBook, RefusesRulesThatAreNotWhole) {
  const auto complaints_of = [](const std::string& text) {
    LawBook book;
    add_spec("docs/spec/pds.md", text, book);
    return book.complaints;
  };
  const std::string good = "#### <a id=\"pds-3\"></a>PDS-3: x\n*derived*\n\nA sentence.\n";
  EXPECT_THAT(complaints_of(good), IsEmpty());
  EXPECT_THAT(complaints_of(good + good), ElementsAre("PDS-3: defined twice"));
  EXPECT_THAT(complaints_of("#### <a id=\"pds-4\"></a>PDS-3: x\n*derived*\n\nA sentence.\n"),
              ElementsAre(HasSubstr("its anchor is pds-4")));
  EXPECT_THAT(complaints_of("#### <a id=\"pds-3\"></a>PDS-3: x\n\n\nA sentence.\n"),
              ElementsAre(HasSubstr("no known tags")));
  EXPECT_THAT(complaints_of("#### <a id=\"pds-3\"></a>PDS-3: x\n*derived, guessed*\n\nText.\n"),
              ElementsAre(HasSubstr("no known tags")));
  EXPECT_THAT(complaints_of("#### <a id=\"pds-3\"></a>PDS-3: x\n*derived*\n\n"),
              ElementsAre(HasSubstr("no sentence")));
  EXPECT_THAT(complaints_of("#### <a id=\"pds-3\"></a>PDS 3 without colon\n"),
              ElementsAre(HasSubstr("no heading")));
  EXPECT_THAT(complaints_of("#### PDS-3: without anchor\n"), ElementsAre(HasSubstr("no heading")));
  EXPECT_THAT(complaints_of("# PDS: a title\n#### Example 1\n"), IsEmpty());
}

TEST(TidyLawBook, RefusesCitationsWithoutText) {
  const auto cited = [](const std::string& text) {
    std::vector<Use> uses;
    add_uses("src/a.cc", text, uses);
    std::vector<std::string> names;
    for (const Use& use : uses) names.push_back(use.name);
    return names;
  };
  EXPECT_THAT(cited("// PDS-53.\n(SES-58 to 67), CMS-93, 94 and 96)"),
              ElementsAre("PDS-53", "SES-58", "SES-67", "CMS-93", "CMS-94", "CMS-96"));
  EXPECT_THAT(cited("WIRE 2.3, CMS 9.5. PDS section 6. SES sections 4, 5 and 12.1."),
              ElementsAre("WIRE 2.3", "CMS 9.5", "PDS 6", "SES 4", "SES 5", "SES 12.1"));
  EXPECT_THAT(cited("CMS-406, 675 and 677 without; PDS_3 XPDS-3 TSS 0-RTT PDS x PDS-x PDS"),
              ElementsAre("CMS-406"));

  std::vector<Use> uses;
  add_uses("src/a.cc", "// PDS-3\n\n// PDS-4, PDS 2.1\n", uses);
  EXPECT_THAT(check_uses(small_book(), uses), IsEmpty());
  add_uses("src/a.cc", "\n// PDS-9 and PDS 2.2\n", uses);
  EXPECT_THAT(check_uses(small_book(), uses),
              ElementsAre("src/a.cc:2 cites PDS-9, which docs/spec does not define",
                          "src/a.cc:2 cites PDS 2.2, which docs/spec does not define"));
}

TEST(TidyRules, CoverageRefusesGapsAndStaleReasons) {
  const LawBook rules = small_book();
  const Exceptions exceptions = parse_exceptions("PDS-4 nothing to see\nPDS-5 open: not built\n");
  Citations citations = {{"PDS-3", {{"a_test.cc", "A.B"}}}};
  EXPECT_THAT(check_conformance(rules, citations, exceptions), IsEmpty());
  EXPECT_THAT(check_conformance(rules, {}, exceptions),
              ElementsAre(HasSubstr("PDS-3 is named by no")));
  citations["PDS-5"] = {{"a_test.cc", "A.B"}};
  EXPECT_THAT(check_conformance(rules, citations, exceptions),
              ElementsAre(HasSubstr("take it off")));
  citations.erase("PDS-5");
  citations["PDS-6"] = {{"a_test.cc", "A.B"}};
  EXPECT_THAT(check_conformance(rules, citations, exceptions),
              ElementsAre(HasSubstr("PDS-6 is no rule")));
}

TEST(TidyRules, ThePageSaysWhatIsTestedAndWhatIsNot) {
  const std::string page = conformance_page(
      small_book(), {{"PDS-3", {{"test/a_test.cc", "A.B"}, {"test/a_test.cc", "A.C"}}}},
      parse_exceptions("PDS-4 nothing to see\nPDS-5 open: not built\n"),
      vector_names("{\"name\": \"rud_write\"}"), "/spec");
  EXPECT_THAT(page, HasSubstr("| PDS | 3 | 1 | 1 | 1 |"));
  EXPECT_THAT(page, HasSubstr("\n## PDS: Part\n"));
  EXPECT_THAT(page, HasSubstr("| [PDS-3](/spec/pds.md#pds-3) | x3 | a_test.cc: A.B, A.C |"));
  EXPECT_THAT(page, HasSubstr("(/spec/pds.md#pds-4) | x4 | not applicable: nothing to see |"));
  EXPECT_THAT(page, HasSubstr("(/spec/pds.md#pds-5) | x5 | **open**: not built |"));
  EXPECT_THAT(page, HasSubstr("- rud_write\n"));
  EXPECT_THAT(page, HasSubstr("On the kernel's UDP sockets the kernel writes a right checksum"));
}

// --- the tree -----------------------------------------------------------------------------------

TEST(Tree, IncludesFollowTheLayers) {
  Complaints complaints;
  for (const std::string& file : cpp_files({"include", "src", "prov"})) {
    append(complaints, check_includes(file, read(kSource / file)));
  }
  expect_clean(complaints);
}

TEST(Tree, CoreIsSansIo) {
  ASSERT_STRNE(UET_CORE_ARCHIVES, "") << "no module of the core is a library";
  const std::string archives = core_archives();
  expect_clean(check_core_symbols(output_of("nm -u -C" + archives),
                                  output_of("nm --defined-only -C" + archives), kSanitized));
}

TEST(Tree, UnitTestsMirrorTheSources) {
  Complaints complaints;
  for (const std::string& file : cpp_files({"src"})) {
    if (!file.ends_with(".cc") || !is_core_module(module_of(file))) continue;
    const std::string stem = file.substr(4, file.size() - 4 - 3);
    const bool tested = fs::exists(kSource / "test/unit" / (stem + "_test.cc"));
    if (tested == kNoUnitTest.contains(file)) {
      complaints.push_back(file + (tested ? ": has a test; take it off kNoUnitTest"
                                          : ": no test/unit/" + stem + "_test.cc"));
    }
  }
  for (const std::string& file : cpp_files({"test/unit"})) {
    if (!file.ends_with("_test.cc")) continue;
    const std::string stem = file.substr(10, file.size() - 10 - 8);
    if (!fs::exists(kSource / "src" / (stem + ".cc")) &&
        !fs::exists(kSource / "src" / (stem + ".h")) &&
        !fs::exists(kSource / "include/uet" / (stem + ".h")) && !is_in_provider(stem) &&
        !kNoSource.contains(file)) {
      complaints.push_back(file + ": tests no source file of that name");
    }
  }
  for (const auto& [file, reason] : kNoUnitTest) {
    if (!fs::exists(kSource / file)) complaints.push_back(file + ": on kNoUnitTest, not there");
    if (reason.empty()) complaints.push_back(file + ": no reason on kNoUnitTest");
  }
  expect_clean(complaints);
}

TEST(Tree, FilesAreShortAndCarryTheLicence) {
  Complaints complaints;
  for (const std::string& file :
       cpp_files({"include", "src", "prov", "examples", "fabtests", "tools", "netsim", "test"})) {
    const std::string text = read(kSource / file);
    append(complaints, check_length(file, text));
    append(complaints, check_spdx(file, text));
  }
  std::vector<std::string> others = {"CMakeLists.txt", ".ci/run"};
  for (const char* directory :
       {"scripts", "prov", "examples", "fabtests", "tools", "netsim", "test"}) {
    for (const std::string& file : files_under(directory)) {
      if (std::string_view(directory) == "scripts" || file.ends_with("CMakeLists.txt")) {
        others.push_back(file);
      }
    }
  }
  for (const std::string& file : others) {
    append(complaints, check_spdx(file, read(kSource / file)));
  }
  expect_clean(complaints);
}

TEST(Tree, WhatFabtestsExcludesHasAReasonAboveIt) {
  std::istringstream lines(read(kSource / "fabtests/uet.exclude"));
  Complaints complaints;
  bool reason = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != '#' && !reason) complaints.push_back(line);
    reason = line.starts_with("# ");
  }
  expect_clean(complaints);
}

TEST(Tree, LibraryCodeNeitherPrintsNorExits) {
  Complaints complaints;
  for (const std::string& file : cpp_files({"include", "src", "prov"})) {
    append(complaints, check_calls(file, read(kSource / file)));
    append(complaints, check_leftovers(file, read(kSource / file)));
  }
  expect_clean(complaints);
}

TEST(Tree, PlugInExportsOnlyItsEntry) {
  ASSERT_STRNE(UET_PLUG_IN, "") << "libuet-fi.so is not built";
  expect_clean(check_exports(output_of("nm -D -C --defined-only '" UET_PLUG_IN "'")));
}

TEST(Tree, PlugInAndModulesDestroyNoStaticObject) {
  ASSERT_STRNE(UET_PLUG_IN, "") << "libuet-fi.so is not built";
  if (kSanitized) GTEST_SKIP() << "the sanitizers register destructors of their own";
  Complaints complaints;
  for (const auto& entry : fs::directory_iterator(fs::path(UET_PLUG_IN).parent_path())) {
    const std::string file = entry.path().string();
    if (!file.ends_with(".so")) continue;
    for (const std::string& complaint :
         check_destructors(output_of("nm -D --undefined-only '" + file + "'"))) {
      complaints.push_back(file + " " + complaint);
    }
  }
  expect_clean(complaints);
}

TEST(Tree, PlugInNeedsOnlyTheAllowedLibraries) {
  ASSERT_STRNE(UET_PLUG_IN, "") << "libuet-fi.so is not built";
  expect_clean(check_needed(output_of("readelf -d '" UET_PLUG_IN "'"), kSanitized));
}

TEST(Tree, EveryRoomSaysWhatItIsFor) {
  Complaints complaints;
  for (const char* module : {"src/base", "src/wire", "src/tss", "src/cms", "src/pds", "src/ri",
                             "src/av", "src/ses", "src/fep", "src/nic", "src/live", "prov/uet"}) {
    const fs::path readme = kSource / module / "README.md";
    if (!fs::exists(readme)) complaints.push_back(std::string(module) + ": no README.md");
  }
  expect_clean(complaints);
}

TEST(Tree, EveryRuleIsNamedByATestOrHasAReason) {
  const Conformance tree = read_conformance(kSource);
  expect_clean(check_conformance(tree.rules, tree.citations, tree.exceptions));
}

TEST(Tree, EveryCitationHasATextInTheLawBook) {
  const std::vector<Use> uses = read_uses(kSource);
  const auto in_sources = std::count_if(uses.begin(), uses.end(), [](const Use& use) {
    return use.where.starts_with("src/") || use.where.starts_with("include/");
  });
  EXPECT_GT(in_sources, 500) << "the sources cite rules; the search finds none";
  expect_clean(check_uses(read_conformance(kSource).rules, uses));
}

}  // namespace
}  // namespace uet::tidy
