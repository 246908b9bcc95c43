"""Every pelab command line that documents, --help, reports and messages print must be one that its
program accepts, according to --help. Commands that only read are also run on a made-up database."""

import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from forked_program import ForkedProgram  # noqa: E402
from pelab_harness import BIN, SOURCE  # noqa: E402
from printed_commands import (  # noqa: E402
    Commands, Mistake, of_markdown, of_prose, of_source, split)

POPULATE = BIN.parent / "tests" / "pelab-populate"
DOCUMENTS = [SOURCE / "README.md", SOURCE / "client" / "python" / "README.md",
             SOURCE / "deploy" / "README.md", SOURCE / "CONTRIBUTING.md",
             *(path for path in sorted((SOURCE / "docs").rglob("*.md")) if "adr" not in path.parts)]
SOURCES = [path for folder in ("client", "core/pages", "core/db", "core/results", "core/experiment",
                               "server", "worker/agent", "worker/scale")
           for path in sorted((SOURCE / folder).rglob("*"))
           if path.suffix in (".cc", ".h", ".js", ".html") and "node_modules" not in path.parts]
PROSE = {"runs"}  # words after "pelab" in sentences that look like commands
READING = {"status", "jobs", "results", "curves", "diff", "ablation", "deposits", "analyses",
           "artifacts", "report", "catalog", "export", "logs", "completion", "workers", "audit"}
# Analyses that examples need, by sweep.
MORE = {"quick": ", {name: head_ablation, method: mean}", "induction": ", split_accuracy"}
SWEEP = """\
name: {name}
protocol: clean
pe: [nope, rope, mla]
task: [distance, counting]
seed: 0..2
model: {{d_model: 32, d_ff: 64, heads: 4, layers: 2, max_len: 128}}
train: {{epochs: 3, lr: {lr}}}
analyses: [head_ablation{more}]
"""


class PrintedCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = Commands(BIN)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pelab-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        # examples show results of these sweeps
        names = ["quick", "table1", "paper-table1", "paper-figure05", "gate", "induction"]
        for place, name in enumerate(names):
            (cls.folder / f"{name}.yaml").write_text(SWEEP.format(name=name, lr=f"{place + 1}e-3",
                                                                  more=MORE.get(name, "")))
        subprocess.run([POPULATE, *(cls.folder / f"{name}.yaml" for name in names),
                        "--db", cls.folder / "pelab.db", "--fail-every", "5"], check=True)

    def printed(self):
        """Yields (place, words, environment, mentioned) of the commands in documents and help
        texts."""
        for document in DOCUMENTS:
            for number, line, mentioned in of_markdown(document.read_text()):
                yield from self.words(f"{document.relative_to(SOURCE)}:{number}", line, mentioned)
        for page in self.commands.all():
            for line in page.examples():
                yield from self.words(f"{' '.join(page.path)} --help", line, False)

    def words(self, place, line, mentioned):
        try:
            found = split(line)
        except Mistake as error:
            if not mentioned:
                self.fail(f"{place}: {line}: {error}")
            return
        if found is not None:
            yield f"{place}: {line.strip()}", *found, mentioned

    def test_every_printed_command_is_taken(self):
        mistakes, count = [], 0
        for place, words, _, mentioned in self.printed():
            count += 1
            try:
                self.commands.check(words, mentioned)
            except Mistake as error:
                mistakes.append(f"{place}\n    {error}")
        self.assertEqual(mistakes, [], "\n".join(mistakes))
        self.assertGreater(count, 120)

    def test_every_message_names_commands_that_there_are(self):
        mistakes, count = [], 0
        for path in SOURCES:
            for number, text in of_source(path.read_text()):
                program, command, options = of_prose(text)
                place = f"{path.relative_to(SOURCE)}:{number}: {text[:100]}"
                top = self.commands.help([program])
                if command not in top.subcommands:
                    if (difflib.get_close_matches(command, top.subcommands, 1, 0.7)
                        and command not in PROSE):
                        mistakes.append(f'{place}\n    there is no command "{command}"')
                    continue
                count += 1
                known = dict(top.options)
                for page in self.commands.below([program, command]) if program == "pelab" else []:
                    known.update(page.options)
                mistakes += [f"{place}\n    {program} {command} has no option {option}"
                             for option in options if option not in known]
        self.assertEqual(mistakes, [], "\n".join(mistakes))
        self.assertGreater(count, 80)

    def test_reading_commands_run(self):
        failed, ran, shown = [], 0, {}
        outer = {name: value for name, value in os.environ.items() if name != "PELAB_SERVER"}
        key = subprocess.run([BIN / "pelab", "jobs", "quick", "--output", "csv"], cwd=self.folder,
                             capture_output=True, text=True,
                             check=True).stdout.splitlines()[1].split(",")[1]
        for place, words, environment, mentioned in self.printed():
            if mentioned or not self.only_reads(words) or environment or "…" in words:
                continue
            words = [key[:6] if re.fullmatch(r"[0-9a-f]{6}", word) and not word.isdigit() else word
                     for word in words]
            for name, value in zip(words, words[1:]):
                if name == "--db" and not (self.folder / value).exists():
                    (self.folder / value).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(self.folder / "pelab.db", self.folder / value)
            if tuple(words) not in shown:  # it reads, so the same words say the same again
                shown[tuple(words)] = ForkedProgram.of(BIN / words[0]).run(
                    words[1:], self.folder, outer, timeout=60)
            result = shown[tuple(words)]
            ran += 1
            if result.returncode != 0:
                failed.append(f"{place}\n    exit {result.returncode}: "
                              f"{result.stdout[-200:]}{result.stderr[-400:]}")
        self.assertEqual(failed, [], "\n".join(failed))
        self.assertGreater(ran, 40)

    @staticmethod
    def only_reads(words):
        if words[0] != "pelab" or len(words) < 2:
            return False
        writes_elsewhere = any(word.startswith("/") for word in words)
        waits = {"--server", "--watch", "-f", "--follow", "get", "drain", "resume"} & set(words)
        reads = words[1] in READING or words[1:3] in (["db", "info"], ["db", "check"])
        return reads and not writes_elsewhere and not waits

    def test_what_a_mistake_is(self):
        for line in ["pelab extend quick --seeds 1", "pelab reslts quick", "pelab results a b",
                     "pelab priority quick", "pelab db chek", "pelab workers drain",
                     "pelab-worker --pak 3", "pelab-trainer rnu", "pelab --no-such status"]:
            with self.assertRaises(Mistake, msg=line):
                self.commands.check(split(line)[0])
        for line in ["host0$ pelab-server --db lab.db --tls-cert … --insecure",
                     "PELAB_SERVER=a:1 pelab submit s.yaml --watch  # a comment",
                     "pelab priority 3 -- -5", "pelab curves --sweep 3 --output csv > curves.csv",
                     "source <(pelab completion bash)"]:
            self.commands.check(split(line)[0])


class MakeTargets(unittest.TestCase):
    def test_every_printed_target_is_there(self):
        targets = set(re.findall(r"^([a-z][\w-]*):", (SOURCE / "Makefile").read_text(),
                                 re.MULTILINE))
        for document in DOCUMENTS:
            text = document.read_text()
            printed = re.findall(r"`make ([a-z][\w-]*)", text) + re.findall(r"^make ([a-z][\w-]*)",
                                                                            text, re.MULTILINE)
            self.assertEqual(set(printed) - targets, set(), document)


if __name__ == "__main__":
    unittest.main(verbosity=2)
