"""Python's cycle collector, kept out of work that makes many objects and no cycles: the codecs' own switch.

The collector would walk all objects of the process, of which torch alone makes millions, because a program's
tree grew by thousands: measured, one save in ten took twenty times as long.
"""

from __future__ import annotations

from .generated.collector import collector_off

__all__ = ["collector_off"]
