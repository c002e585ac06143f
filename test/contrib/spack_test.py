#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The Spack package names only what is there: each option of its cmake_args is one of CMakeLists.txt,
each back end has a directory, and versions of dependencies are those that CMakeLists.txt asks for.
Spack itself is not needed: a module of the same name records what the package says. If UET_SPACK names
a directory of Spack, `spack spec` resolves the package with each of its back ends.
Use: spack_test.py SOURCE_TREE"""
import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

tree = pathlib.Path(sys.argv[1])
cmake = (tree / "CMakeLists.txt").read_text()
said = {"variant": {}, "depends_on": []}
conditions = []


class Anything:
    """Of a prefix: its directories."""

    def __getattr__(self, name):
        return self


class Spec:
    def __init__(self, on):
        self.on = on

    def satisfies(self, text):
        return text[1:] in self.on


class CMakePackage:
    prefix = Anything()

    def define(self, name, value):
        return name, value


@contextlib.contextmanager
def when(condition):
    conditions.append(condition)
    yield
    conditions.pop()


def depends_on(name, when=None, **_):
    said["depends_on"].append((name, [c for c in [*conditions, when] if c]))


recorder = types.ModuleType("spack.package")
recorder.CMakePackage = CMakePackage
recorder.when = when
recorder.depends_on = depends_on
recorder.variant = lambda name, default, description: said["variant"].update({name: default})
recorder.version = recorder.license = recorder.generator = lambda *_, **__: None
sys.modules["spack"] = types.ModuleType("spack")
sys.modules["spack.package"] = recorder

# Package API v1, which Spack reads before and after its version 1.0: v2 wants a folder spack_repo and
# underscores in the names of packages.
repository = tree / "contrib/spack"
assert "api:" not in (repository / "repo.yaml").read_text(), "repo.yaml: a package API other than v1"
(path,) = repository.glob("packages/*/package.py")
assert path.parent.name == "libfabric-uet", f"folder {path.parent.name} is not the name of the package"
space = {"__file__": str(path), "__name__": "package"}
exec(compile(path.read_text(), str(path), "exec"), space)
package = space["LibfabricUet"]
assert package.git == tree.resolve().as_uri(), f"{package.git} is not this tree"

options = set(re.findall(r"^\s*option\((\w+)", cmake, re.M)) | set(re.findall(r"^\s*set\((\w+) .*\bCACHE\b", cmake, re.M))
nics = re.search(r"^set\(UET_NICS (.*?) CACHE", cmake, re.M).group(1).split()
back_ends = [name for name in said["variant"] if name != "tools"]
assert set(nics) - set(back_ends) == {"shared", "xdp"}, f"variants {back_ends}, UET_NICS {nics}"
for name in back_ends:
    assert (tree / "src/nic" / name).is_dir(), f"no back end {name}"

for count in range(len(back_ends) + 1):
    for on in itertools.combinations(back_ends, count):
        instance = package()
        instance.spec = Spec(on)
        arguments = dict(instance.cmake_args())
        for name in arguments:
            assert name in options, f"CMakeLists.txt has no option {name}"
        assert set(filter(None, arguments["UET_NICS"].split(";"))) == set(on), arguments["UET_NICS"]

# Of Spack's package: what pkg-config calls it, and the version that the build asks of that.
same = {"libfabric": "libfabric", "dpdk": "libdpdk", "openssl": "libcrypto", "libmicrohttpd": "libmicrohttpd",
        "liburing": "liburing"}
asked = dict(re.findall(r"pkg_check_modules\(\w+(?: REQUIRED)? IMPORTED_TARGET ([\w-]+)>=([\d.]+)",
                        cmake + (tree / "tools/CMakeLists.txt").read_text()))
for name, under in said["depends_on"]:
    package_name, _, version = name.partition("@")
    if package_name in same:
        needed = asked[same[package_name]].removesuffix(".0")
        assert version.rstrip(":") == needed, f"{name}: the build asks for {needed}"
    for condition in under:
        assert condition[1:] in said["variant"], f"{name}: no variant {condition}"
minimum = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", cmake).group(1)
assert any(name == f"cmake@{minimum}:" for name, _ in said["depends_on"]), f"cmake is not {minimum}"

if spack := os.environ.get("UET_SPACK"):
    with tempfile.TemporaryDirectory() as scope:
        (pathlib.Path(scope) / "repos.yaml").write_text(f"repos: [{repository.resolve()}]\n")
        wanted = "libfabric-uet " + "".join("+" + name for name in back_ends)
        subprocess.run([f"{spack}/bin/spack", "--config-scope", scope, "spec", wanted], check=True)

print(f"{len(back_ends)} back ends, {len(said['depends_on'])} dependencies: all is well")
