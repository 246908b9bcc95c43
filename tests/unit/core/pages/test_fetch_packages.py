"""core/pages/fetch_packages.mjs against a registry of this test."""
import base64
import hashlib
import http.server
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[4] / "core" / "pages" / "fetch_packages.mjs"
CPU = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OTHER_CPU = "arm64" if CPU == "x64" else "x64"


def tarball(**files):
    """The bytes of a package: its files below package/, as npm packs them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def integrity(content):
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


class FetchPackages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.files, self.asked = {}, []
        test = self

        class Registry(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802, the library's name
                test.asked.append(self.path)
                content = test.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.registry = f"http://127.0.0.1:{server.server_port}"

    def fetch(self, packages, *more, registry=None):
        lock = self.folder / "package-lock.json"
        lock.write_text(json.dumps({"packages": {"": {"name": "own"}, **packages}}))
        return subprocess.run(
            ["node", SCRIPT, lock, self.folder, *more], capture_output=True, text=True, timeout=60,
            env={**os.environ, "NPM_CONFIG_REGISTRY": registry or f"{self.registry}/"})

    def refused(self, packages, *said, **how):
        result = self.fetch(packages, **how)
        self.assertEqual(result.returncode, 1, result.stderr)
        for text in said:
            self.assertIn(text, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertFalse((self.folder / "node_modules").exists(), "something is left")

    def test_installs_what_this_system_can_use(self):
        plain, scoped = tarball(**{"a.js": "plain", "lib/b.js": "deep"}), tarball(bin="scoped")
        self.files = {"/plain/-/plain-1.2.3.tgz": plain, "/@own/tool/-/tool-4.0.0.tgz": scoped}
        old = self.folder / "node_modules" / "old"
        old.mkdir(parents=True)
        self.assertEqual(self.fetch({
            "node_modules/plain": {"version": "1.2.3", "integrity": integrity(plain)},
            "node_modules/@own/tool": {"version": "4.0.0", "integrity": integrity(scoped),
                                       "os": ["linux"], "cpu": [CPU]},
            "node_modules/other-cpu": {"version": "1.0.0", "cpu": [OTHER_CPU]},
            "node_modules/other-system": {"version": "1.0.0", "os": ["win32"]},
            "node_modules/other-libc": {"version": "1.0.0", "libc": ["musl"]}}).returncode, 0)
        modules = self.folder / "node_modules"
        found = {str(file.relative_to(modules)): file.read_text() for file in modules.rglob("*")
                 if file.is_file()}
        self.assertEqual(found, {"plain/a.js": "plain", "plain/lib/b.js": "deep",
                                 "@own/tool/bin": "scoped"})
        self.assertTrue(os.access(modules / "@own/tool/bin", os.X_OK))
        self.assertFalse(old.exists(), "npm ci removes it too")
        self.assertEqual(self.asked, list(self.files))

    def test_other_bytes_are_refused(self):
        good, bad = tarball(a="good"), tarball(a="bad")
        self.files = {"/good/-/good-1.0.0.tgz": good, "/bad/-/bad-1.0.0.tgz": bad}
        self.refused({"node_modules/good": {"version": "1.0.0", "integrity": integrity(good)},
                      "node_modules/bad": {"version": "1.0.0", "integrity": integrity(good)}},
                     "bad: its bytes have", integrity(bad), integrity(good))

    def test_a_package_without_sha512_is_refused(self):
        content = tarball(a="a")
        self.files = {"/a/-/a-1.0.0.tgz": content}
        for said in ({}, {"integrity": "sha1-" + "A" * 27 + "="}):
            self.refused({"node_modules/a": {"version": "1.0.0", **said}},
                         "a: the lock file has no SHA-512")

    def test_registries_that_fail_are_named(self):
        packages = {"node_modules/a": {"version": "1.0.0", "integrity": "sha512-"}}
        self.refused(packages, f"{self.registry}/a/-/a-1.0.0.tgz: the registry answers 404")
        self.refused(packages, "http://127.0.0.1:1/a/-/a-1.0.0.tgz: ",
                     registry="http://127.0.0.1:1")

    def test_usage(self):
        result = self.fetch({}, "more")
        self.assertEqual((result.returncode, result.stderr),
                         (2, "usage: node fetch_packages.mjs LOCK DIR\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
