"""Mounts that only this process and its children see, for tests with disks of their own."""

import ctypes

CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 1 << 14, 1 << 18, 2


def own_mounts():
    """Gives this process and its children a private mount namespace. Returns the reason if that is
    not allowed, else None."""
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.unshare(CLONE_NEWNS) != 0
        or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0):
        return f"no mounts of one's own here (errno {ctypes.get_errno()})"
    return None


def mount_tmpfs(folder, options, flags=0):
    """Mounts a disk in memory on the folder. Returns the reason if that is not allowed, else
    None."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", flags, options.encode()) != 0:
        return f"no tmpfs here (errno {ctypes.get_errno()})"
    return None


def unmount(folder):
    """Takes the disk away, even from programs that use it, so that the folder can be removed."""
    ctypes.CDLL(None).umount2(str(folder).encode(), MNT_DETACH)
