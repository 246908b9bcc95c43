"""Stand-ins for sbatch, squeue and scancel: one allocation after the other is taken, and waits."""

import os

SBATCH = """\
#!/bin/sh
for word; do
  case $word in
    --comment=*) comment=${word#--comment=} ;;
    --test-only) exit 0 ;;
  esac
  script=$word
done
id=$(($(cat ids 2>/dev/null || echo 4710) + 1))
echo $id >ids
echo "$id|PENDING|Priority|$comment" >>jobs
cp "$script" new
mv new script.$id
echo $id
"""
SQUEUE = """\
#!/bin/sh
cat jobs 2>/dev/null
exit 0
"""
SCANCEL = """\
#!/bin/sh
sed -i "s/^$1|[A-Z_]*|/$1|CANCELLED|/" jobs
"""


class FakeSlurm:
    """The programs, in `folder`, and what they know."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
            path = folder / name
            path.write_text(text.replace("#!/bin/sh\n", f"#!/bin/sh\ncd '{folder}'\n", 1))
            path.chmod(0o755)
        # The environment of a program that finds these ones.
        self.env = {"PATH": f"{folder}:{os.environ['PATH']}"}

    def scripts(self):
        """The scripts of the allocations, by number."""
        return {int(path.suffix[1:]): path.read_text() for path in self.folder.glob("script.*")}

    def set(self, allocation, state):
        jobs = self.folder / "jobs"
        lines = [line.split("|") for line in jobs.read_text().splitlines()]
        for line in lines:
            if line[0] == str(allocation):
                line[1] = state
        jobs.write_text("".join("|".join(line) + "\n" for line in lines))
