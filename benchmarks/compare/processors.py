"""Reads the system's description of this machine's processor."""

from __future__ import annotations

from functools import cache
from pathlib import Path


def model_name() -> str:
    """Returns the processor, as the system calls it."""
    family = model = name = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = (part.strip() for part in line.partition(":"))
            if key == "model name":
                name = value
            elif key == "cpu family":
                family = value
            elif key == "model":
                model = value
            elif not key:
                break
    return f"{name} (family {family}, model {model})"


@cache
def cache_bytes() -> int:
    """Bytes of the largest cache; 0 where the system does not say."""
    found = [0]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text(encoding="ascii").strip()
        found.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]] if text[-1] in "KM" else int(text))
    return max(found)
