// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "settings/default_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace uet::prov {
namespace {

using testing::HasSubstr;
using Variables = decltype(Launch::variables);

JobId job(const Variables& variables, std::uint32_t uid = 1000) {
  return default_job({variables, {}, uid}).job;
}

TEST(DefaultJob, Ses163_NoLauncherIsTheWellKnownJob) {
  EXPECT_EQ(job({}), kWellKnownJob);
  EXPECT_EQ(job({}, 0), kWellKnownJob) << "of every user";
  EXPECT_EQ(kWellKnownJob.value, 1U) << "SES-142";
  EXPECT_EQ(job({{"PMIX_NAMESPACE", ""}, {"SLURM_JOB_ID", ""}, {"PMI_RANK", ""}}), kWellKnownJob)
      << "an empty variable is none";
}

TEST(DefaultJob, Ses163_UetRunGivesTheNumberItself) {
  EXPECT_EQ(job({{"UET_JOB_ID", "101"}}).value, 101U);
  EXPECT_EQ(job({{"UET_JOB_ID", "0xABCDEF"}}).value, 0xABCDEFU);
  for (const char* const broken : {"16777216", "-1", "a"}) {
    EXPECT_GE(job({{"UET_JOB_ID", broken}}).value, 0x800000U) << broken;
    EXPECT_LE(job({{"UET_JOB_ID", broken}}).value, kMaxJobId) << broken;
  }
}

TEST(DefaultJob, Ses163_EachLauncherTellsItsJobsApart) {
  std::set<std::uint32_t> seen = {kWellKnownJob.value};
  for (const Variables& variables : std::initializer_list<Variables>{
           {{"PMIX_NAMESPACE", "2398617601"}},
           {{"PMIX_NAMESPACE", "2398683137"}},
           {{"PMIX_NAMESPACE", "prterun-host-1234@1"}},
           {{"PMIX_NAMESPACE", "prterun-host-1235@1"}},
           {{"PMIX_NAMESPACE", "slurm.pmix.77.0"}},
           {{"PMIX_NAMESPACE", "slurm.pmix.77.1"}},
           {{"OMPI_MCA_ess_base_jobid", "305332225"}},
           {{"OMPI_MCA_ess_base_jobid", "305397761"}},
           {{"PMI_JOBID", "77.0"}},
           {{"PMI_JOBID", "77.1"}},
           {{"I_MPI_HYDRA_UUID", "6f0000"}},
           {{"PALS_APID", "4f3a"}},
           {{"FLUX_JOB_ID", "f2"}},
           {{"SLURM_JOB_ID", "77"}},
           {{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}},
           {{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "1"}},
           {{"SLURM_JOB_ID", "78"}, {"SLURM_STEP_ID", "0"}},
       }) {
    const JobId id = job(variables);
    EXPECT_TRUE(seen.insert(id.value).second) << default_job({variables, {}, 0}).source;
    EXPECT_GE(id.value, 0x800000U) << "apart from numbers that users choose";
    EXPECT_LT(id.value, kMaxJobId);
    EXPECT_EQ(job(variables, 0), id) << "equal for every user id and on every host";
  }
}

TEST(DefaultJob, Ses163_SpawnedJobsBelongToTheirParent) {
  EXPECT_EQ(job({{"PMIX_NAMESPACE", "2398617601"}}), job({{"PMIX_NAMESPACE", "2398617602"}}));
  EXPECT_EQ(job({{"PMIX_NAMESPACE", "prterun-a-1@1"}}), job({{"PMIX_NAMESPACE", "prterun-a-1@2"}}));
  EXPECT_EQ(job({{"OMPI_MCA_ess_base_jobid", "305332225"}}),
            job({{"OMPI_MCA_ess_base_jobid", "305332226"}}));
  EXPECT_EQ(job({{"SLURM_JOB_ID", "78"}, {"SLURM_HET_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}}),
            job({{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}}));
}

// An mpirun inside of a Slurm job: its daemons on other hosts are steps of their own.
TEST(DefaultJob, Ses163_NearestLauncherCounts) {
  const Variables first = {{"SLURM_JOB_ID", "77"}, {"PMIX_NAMESPACE", "2398617601"}};
  Variables other_host = first;
  other_host["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(job(first), job(other_host));
  Variables under_uet_run = first;
  under_uet_run["UET_JOB_ID"] = "101";
  EXPECT_EQ(job(under_uet_run).value, 101U);
}

TEST(DefaultJob, Ses163_HydraIsKnownByThePortOfItsMpiexec) {
  const Variables rank = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
  const DefaultJob a = default_job({rank, "host:4000", 1000});
  EXPECT_THAT(a.source, HasSubstr("host:4000"));
  EXPECT_NE(a.job, default_job({rank, "host:4001", 1000}).job);
  EXPECT_NE(a.job, kWellKnownJob);
  const JobId nameless = default_job({rank, {}, 1000}).job;
  EXPECT_NE(nameless, kWellKnownJob);
  EXPECT_NE(nameless, default_job({rank, {}, 1001}).job) << "users are apart";
}

TEST(DefaultJob, HydraPortIsReadFromTheCommandLineOfItsProxy) {
  using namespace std::string_view_literals;
  EXPECT_EQ(hydra_port_of("/usr/bin/hydra_pmi_proxy\0--control-port\0h:35487\0--rmk\0user\0"sv),
            "h:35487");
  EXPECT_EQ(hydra_port_of("hydra_pmi_proxy\0--control-port\0"sv), "");
  EXPECT_EQ(hydra_port_of("/bin/sh\0--control-port\0h:35487\0"sv), "");
  EXPECT_EQ(hydra_port_of(""), "");
}

}  // namespace
}  // namespace uet::prov
