"""deploy/build.sh and what it asks of install-deps.sh, with stand-ins for the tools of
Debian and for CMake, which write down how they were called."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = SOURCE / "deploy" / "build.sh"
PROGRAMS = "pelab pelab-server pelab-worker pelab-trainer"
TORCH = "libtorch-dev libopenblas0-openmp"

# `installed` has the names of packages that are there, or "all".
DPKG_QUERY = """
if grep -qx all "$STATE/installed"; then
  printf 'installed %s\\n' "${@:4}"
else
  printf '%s\\n' "${@:4}" | grep -xFf "$STATE/installed" | sed 's/^/installed /'
fi
exit 0
"""
APT_GET = """
[ "$1" = install ] || exit 0
shift 3
echo "apt-get $*" >> "$STATE/calls"
case " $* " in *" libtorch-dev "* | *" chromium "*)
  if [ -e "$STATE/slow" ]; then sleep 0.5; fi ;;
esac
if [ -e "$STATE/no-torch" ]; then
  case " $* " in *" libtorch-dev "*) echo "E: no libtorch-dev"; exit 100 ;; esac
fi
printf '%s\\n' "$@" >> "$STATE/installed"
echo "installed $*" >> "$STATE/calls"
"""
CMAKE = """
echo "cmake $*" >> "$STATE/calls"
if [ "$1" = --build ]; then
  [ ! -e "$STATE/compile-fails" ]
else
  touch "$FOLDER/CMakeCache.txt" "$FOLDER/build.ninja"
fi
"""


class BuildCase(unittest.TestCase):
    what = "programs"

    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.folder, self.state = self.top / "build", self.top / "state"
        for folder in (self.folder, self.state, self.top / "bin"):
            folder.mkdir()
        (self.state / "installed").touch()
        self.stand_in("dpkg-query", DPKG_QUERY)
        self.stand_in("apt-get", APT_GET)
        self.stand_in("cmake", CMAKE)
        self.stand_in("id", "echo 0")
        self.stand_in("node", "echo 20")

    def stand_in(self, name, text):
        file = self.top / "bin" / name
        file.write_text(f"#!/usr/bin/env bash\n{text}")
        file.chmod(0o755)

    def begin(self):
        return subprocess.Popen(
            [SCRIPT, self.what, self.folder, "release", "2"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PATH": f"{self.top}/bin:{os.environ['PATH']}",
                 "STATE": str(self.state), "FOLDER": str(self.folder)})

    def build(self):
        process = self.begin()
        said = process.communicate(timeout=60)
        return process.returncode, *said

    def calls(self):
        """What was called: apt-get's packages by whether LibTorch is among them."""
        found = []
        for line in (self.state / "calls").read_text().splitlines():
            word, _, rest = line.partition(" ")
            if word == "cmake":
                found.append(rest.replace(str(self.folder), "B"))
            else:
                found.append(f"{word} {'torch' if TORCH in rest else 'other packages'}")
        return found

    def unfinished(self):
        self.assertEqual(list(self.folder.iterdir()), [],
                         "the next call would build without what came later")

    def ends_after_apt_if_the_compiler_fails(self, last):
        for name in ("slow", "compile-fails"):
            (self.state / name).touch()
        self.assertNotEqual(self.build()[0], 0)
        self.assertEqual(self.calls()[-1], last)
        self.unfinished()


class BuildPrograms(BuildCase):
    def configure(self, trainer="ON"):
        return f"--preset release -B B -DPELAB_WITH_TESTS=OFF -DPELAB_WITH_TRAINER={trainer}"

    def test_a_machine_that_has_everything(self):
        (self.state / "installed").write_text("all\n")
        self.assertEqual(self.build()[0], 0)
        self.assertEqual(self.calls(), [self.configure(), f"--build B -j 2 --target {PROGRAMS}"])

    def test_usage(self):
        for words in ([self.folder], ["all", self.folder, "release", "2"]):
            said = subprocess.run([SCRIPT, *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(
                (said.returncode, said.stderr),
                (2, "usage: deploy/build.sh programs|everything|configured FOLDER PRESET JOBS\n"))

    def test_a_folder_that_is_configured(self):
        (self.state / "installed").write_text("all\n")
        (self.folder / "build.ninja").touch()
        self.assertEqual(self.build()[0], 0)
        self.assertEqual(self.calls(), [f"--build B -j 2 --target {PROGRAMS}"])

    def test_a_folder_that_a_killed_call_has_left_without_the_trainer(self):
        (self.state / "installed").write_text("all\n")
        (self.folder / "build.ninja").touch()
        (self.folder / "CMakeCache.txt").write_text("PELAB_WITH_TRAINER:BOOL=OFF\n")
        self.assertEqual(self.build()[0], 0)
        self.assertEqual(self.calls(), [self.configure(), f"--build B -j 2 --target {PROGRAMS}"])

    def test_libtorch_comes_while_the_others_compile(self):
        (self.state / "slow").touch()
        self.assertEqual(self.build()[0], 0)
        calls = self.calls()
        self.assertEqual(calls[:2], ["apt-get other packages", "installed other packages"])
        before = calls[:calls.index("installed torch")]
        self.assertIn("--build B -j 2 --target pelab-server pelab-worker", before)
        self.assertEqual([call for call in calls[2:] if call.startswith("--")],
                         [self.configure("OFF"),
                          "--build B -j 2 --target pelab-server pelab-worker",
                          self.configure("ON"), f"--build B -j 2 --target {PROGRAMS}"])
        self.assertLess(calls.index("installed torch"), calls.index(self.configure("ON")))
        self.assertTrue((self.folder / "build.ninja").exists())

    def test_who_has_to_give_a_password_gives_it_first(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", 'if [ "$1" = -n ]; then exit 1; fi\n"$@"')
        self.assertEqual(self.build()[0], 0)
        self.assertEqual(self.calls(),
                         ["apt-get other packages", "installed other packages", "apt-get torch",
                          "installed torch", self.configure(),
                          f"--build B -j 2 --target {PROGRAMS}"])

    def test_packages_that_cannot_be_installed(self):
        (self.state / "no-torch").touch()
        status, _, errors = self.build()
        self.assertEqual(status, 1)
        self.assertIn("E: no libtorch-dev", errors)
        self.assertIn(f"apt-get could not install: {TORCH}", errors)
        self.unfinished()

    def test_a_compiler_that_fails_does_not_leave_apt_behind(self):
        self.ends_after_apt_if_the_compiler_fails("installed torch")

    def test_an_interrupt(self):
        self.stand_in("cmake", CMAKE + 'case "$*" in *pelab-worker) kill -INT -- -$PPID ;; esac\n')
        process = self.begin()
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.unfinished()
        with self.assertRaises(ProcessLookupError):  # nothing of it is left
            os.killpg(process.pid, signal.SIGKILL)


class BuildEverything(BuildCase):
    what = "everything"
    BUILD = "--build B -j 2 --target all"

    def calls(self):
        return [call.replace("other packages", "the rest") if "--" not in call else call
                for call in super().calls()]

    def configure(self, pythons="ON"):
        return f"--preset release -B B -DPELAB_WITH_TESTS=ON -DPELAB_WITH_PYTHONS={pythons}"

    def test_a_machine_that_has_everything(self):
        (self.state / "installed").write_text("all\n")
        self.assertEqual(self.build()[0], 0)
        self.assertEqual(self.calls(), [self.configure(), self.BUILD])

    def test_what_tests_run_comes_while_they_compile(self):
        (self.state / "slow").touch()
        self.assertEqual(self.build()[0], 0)
        calls = self.calls()
        self.assertEqual(calls[:2], ["apt-get torch", "installed torch"])
        self.assertIn(self.BUILD, calls[:calls.index("installed the rest")])
        self.assertEqual([call for call in calls if call.startswith("--")],
                         [self.configure("OFF"), self.BUILD, self.configure("ON"), self.BUILD])
        self.assertLess(calls.index("installed the rest"), calls.index(self.configure("ON")))
        lines = (self.state / "calls").read_text().splitlines()
        first, rest = (set(line.split()) for line in lines if line.startswith("apt-get"))
        self.assertLessEqual({"libgtest-dev", "libgrpc++-dev"}, first)
        self.assertLessEqual({"chromium", "python3-torch", "python3-numpy"}, rest)

    def test_a_folder_without_the_tests_or_what_they_run_is_configured_again(self):
        (self.state / "installed").write_text("all\n")
        for cache, calls in (("", [self.configure(), self.BUILD]),
                             ("PELAB_WITH_TESTS:BOOL=OFF", [self.configure(), self.BUILD]),
                             ("PELAB_WITH_TESTS:BOOL=ON\nPELAB_WITH_PYTHONS:BOOL=OFF",
                              [self.configure(), self.BUILD]),
                             ("PELAB_WITH_TESTS:BOOL=ON", [self.BUILD])):
            (self.state / "calls").unlink(missing_ok=True)
            (self.folder / "build.ninja").touch()
            (self.folder / "CMakeCache.txt").write_text(cache + "\n")
            self.assertEqual(self.build()[0], 0)
            self.assertEqual(self.calls(), calls, cache)

    def test_a_folder_that_killed_programs_have_left_without_the_trainer_begins_anew(self):
        (self.state / "installed").write_text("all\n")
        self.stand_in("cmake", 'ls "$FOLDER" >> "$STATE/left"' + CMAKE)
        (self.folder / "build.ninja").touch()
        (self.folder / "CMakeCache.txt").write_text(
            "PELAB_WITH_TESTS:BOOL=OFF\nPELAB_WITH_TRAINER:BOOL=OFF\n")
        self.assertEqual(self.build()[0], 0)
        self.assertEqual(self.calls(), [self.configure(), self.BUILD])
        self.assertEqual((self.state / "left").read_text(), "CMakeCache.txt\nbuild.ninja\n",
                         "nothing of it was there before")

    def test_configured_compiles_nothing(self):
        self.what = "configured"
        self.assertEqual(self.build()[0], 0)
        self.assertEqual(self.calls()[-1], self.configure())
        for call in self.calls()[:-1]:
            self.assertTrue(call.startswith(("apt-get", "installed")), call)
        (self.state / "calls").unlink()
        (self.folder / "CMakeCache.txt").write_text("PELAB_WITH_TESTS:BOOL=ON\n")
        self.assertEqual(self.build()[0], 0)
        self.assertFalse((self.state / "calls").exists())

    def test_a_compiler_that_fails_does_not_leave_apt_behind(self):
        self.ends_after_apt_if_the_compiler_fails("installed the rest")


if __name__ == "__main__":
    unittest.main(verbosity=2)
