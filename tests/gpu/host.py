"""What a trainer sees of the devices of this host."""

import json
import subprocess


def missing_device(build, device):
    """A sentence that says why the build's trainer cannot use `device`, or None if it can."""
    trainer = build / "bin/pelab-trainer"
    if not trainer.exists():
        return f"{trainer} is not built"
    done = subprocess.run([trainer, "capabilities"], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        return f"{trainer} does not start: {done.stderr.strip()}"
    seen = json.loads(done.stdout)
    if device in seen["devices"]:
        return None
    return (f"no CUDA device: pelab-trainer with LibTorch {seen['libtorch']} sees "
            f"{', '.join(seen['devices'])}, not {device}")
