# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The libfabric provider uet for Spack: `spack repo add contrib/spack`, `spack install libfabric-uet`."""

from pathlib import Path

from spack.package import *


class LibfabricUet(CMakePackage):
    """Provider of libfabric for Ultra Ethernet Transport over ordinary Ethernet."""

    # The checkout in which this file lies.
    git = Path(__file__).resolve().parents[4].as_uri()

    license("BSD-2-Clause OR GPL-2.0-only")

    version("main", branch="main")

    # Not shared and not xdp: Spack has no package of libbpf or libxdp.
    variant("dpdk", default=False, description="NIC back end dpdk: a poll-mode driver of DPDK")
    variant("verbs", default=False, description="NIC back end verbs: raw packets of RDMA NICs")
    variant("tools", default=True, description="uet_run, uet_stats, uet_trace, uet_top and others")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@1.17:")
    depends_on("openssl@3:")
    depends_on("libnl")
    depends_on("dpdk@22.11:", when="+dpdk")
    depends_on("rdma-core@44:", when="+verbs")
    with when("+tools"):
        depends_on("cli11", type="build")
        depends_on("nlohmann-json", type="build")
        depends_on("libmicrohttpd@0.9.75:")
        depends_on("libpcap")
        depends_on("liburing@2.3:")
        depends_on("ncurses")

    generator("ninja")

    def cmake_args(self):
        back_ends = [name for name in ("dpdk", "verbs") if self.spec.satisfies("+" + name)]
        return [
            self.define("UET_BUILD_TESTS", False),
            self.define("UET_BUILD_BENCH", False),
            self.define("UET_UNITY", True),
            self.define("UET_LTO", True),
            self.define("UET_NICS", ";".join(back_ends)),
            # libfabric has a prefix of its own, where nothing may be added.
            self.define("UET_PROVIDER_DIR", self.prefix.lib.libfabric),
        ]

    def setup_run_environment(self, env):
        env.prepend_path("FI_PROVIDER_PATH", self.prefix.lib.libfabric)
