# SPDX-License-Identifier: MIT
"""weir-tasks.py - gdb shows the tasks of a program, or of a core.

    (gdb) source tools/gdb/weir-tasks.py
    (gdb) weir tasks            name, state, what it waits for, for how long
    (gdb) weir tasks bt         and where: a backtrace of each that has begun
    (gdb) weir tasks bt -full   any arguments of `backtrace`

libweir must have debug information.  Nothing of the program is called or changed, so
it works on a core too.

A task that does not run has its registers on its own stack, where switch_<arch>.S left
them.  gdb is made to believe that this is where the selected thread came from: an unwinder
says so of the thread's innermost frame, and everything further out is found as usual.
"""

import re
import time

import gdb
import gdb.types
import gdb.unwinder

# Of struct weir_task_'s life, in src/task/task.c.
ENDED = 1 << 31

# By architecture: what the stack pointer is called; what switch_stacks left above where it
# was saved, eight bytes each; and how many bytes it took altogether.
LAYOUTS = {
    "i386:x86-64": ("rsp", ["r15", "r14", "r13", "r12", "rbx", "rbp", "rip"], 56),
    "aarch64": ("sp", ["x%d" % i for i in range(19, 30)] + ["pc"], 160),
}


class SavedRegisters:
    """Those of a task that does not run."""

    def __init__(self, body):
        stack = (body + 1).cast(gdb.lookup_type("struct stack").pointer())
        sp = int(stack["context"]["sp"])
        arch = gdb.selected_inferior().architecture().name()
        if arch not in LAYOUTS:
            raise gdb.GdbError("weir: how tasks are switched on %s is not known" % arch)
        self.sp_name, names, size = LAYOUTS[arch]
        word = gdb.lookup_type("unsigned long")
        saved = gdb.Value(sp).cast(word.pointer())
        self.values = {name: saved[i] for i, name in enumerate(names)}
        self.values[self.sp_name] = gdb.Value(sp + size).cast(word)
        self.lowest = sp


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class TaskUnwinder(gdb.unwinder.Unwinder):
    """While `registers` is set, the caller of the innermost frame is that task."""

    def __init__(self):
        super().__init__("weir tasks")
        self.registers = None
        self.innermost = None

    def __call__(self, frame):
        if self.registers is None:
            return None
        sp = frame.read_register(self.registers.sp_name)
        if int(sp) != self.innermost:
            return None
        # An address below all frames of the task, or gdb would think the stack corrupt.
        below = gdb.Value(self.registers.lowest - 16).cast(sp.type)
        info = frame.create_unwind_info(FrameId(below, frame.read_register("pc")))
        for name, value in self.registers.values.items():
            info.add_saved_register(name, value)
        return info

    def backtrace(self, registers, arguments):
        """What `backtrace` prints, less the frames that belong to the thread."""
        level = gdb.selected_frame().level()
        frame, mine = gdb.newest_frame(), 1
        while frame.type() == gdb.INLINE_FRAME:
            frame, mine = frame.older(), mine + 1
        self.innermost = int(frame.read_register(registers.sp_name))
        self.registers = registers
        gdb.invalidate_cached_frames()
        try:
            text = gdb.execute("backtrace " + arguments, to_string=True)
        finally:
            self.registers = None
            gdb.invalidate_cached_frames()
            gdb.execute("frame %d" % level, to_string=True)
        return without_frames(text, mine)


def without_frames(text, count):
    """A backtrace less its innermost frames, and less the 0 where a task's stack ends."""
    text = text[text.find("\n#%d " % count) + 1 :]
    text = re.sub(r"^#\d+ +0x0+ in \?\? \(\)\n", "", text, flags=re.MULTILINE)
    return re.sub(
        r"^#(\d+) +", lambda m: "#%-3d" % (int(m[1]) - count), text, flags=re.MULTILINE
    )


def all_records():
    """Every struct weir_task_ that there ever was, in use or not."""
    for symbol in gdb.lookup_static_symbols("records"):
        # Link-time optimisation describes it twice, and puts one of them in any file.
        value = symbol.value()
        if not value.is_optimized_out and gdb.types.has_field(value.type, "slabs"):
            slab = value["slabs"]
            while slab:
                array = slab["records"]
                first, last = array.type.range()
                for i in range(first, last + 1):
                    yield array[i]
                slab = slab["next"]
            return
    raise gdb.GdbError("weir: no tasks, or no debug information for libweir")


def clock_ns(records):
    """The time by which tasks sleep; in a core, when a worker last looked."""
    virtual = gdb.lookup_global_symbol("clock_virtual_ns")
    if virtual and int(virtual.value()):
        return int(virtual.value())
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection is not None and connection.type == "native":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max((int(t["home"]["now_ns"]) for t in records if t["home"]), default=0)


def running_on(task):
    """The thread that runs the task now, in words; or None."""
    home = task["home"]
    if not home or home["current"] != task.address:
        return None
    handle = home["thread"]
    try:
        thread = gdb.selected_inferior().thread_from_handle(handle) if int(handle) else None
    except gdb.error:
        thread = None
    return "on thread %d" % thread.num if thread else "on the thread of weir_run"


def has_ended(task):
    """And has not been joined; then the record is free."""
    return bool(int(task["queue"]["word"]) & ENDED)


def state(task, now_ns):
    """State, what it waits for, since when: three strings."""
    body = task["body"]
    if has_ended(task):
        return "ended", "", ""
    if not body:
        return "unstarted", "", ""
    where = running_on(task)
    if where:
        return "running", where, ""
    parked_ns = int(body["parked_at_ns"])
    if not parked_ns:
        return "ready", "", ""
    what = body["waits_for"]
    seconds = max(now_ns - parked_ns, 0) / 1e9
    return "parked", what.string() if what else "time", "%.6f s" % seconds


class Weir(gdb.Command):
    """What weir's library is doing."""

    def __init__(self):
        super().__init__("weir", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


class WeirTasks(gdb.Command):
    """List the tasks of the program: name, state, what they wait for and how long.
Usage: weir tasks [bt [ARGUMENTS OF backtrace]]
With bt, a backtrace of each that has begun and does not run follows."""

    def __init__(self):
        super().__init__("weir tasks", gdb.COMMAND_STATUS)
        self.unwinder = TaskUnwinder()
        gdb.unwinder.register_unwinder(None, self.unwinder, replace=True)

    def invoke(self, argument, from_tty):
        command, _, rest = argument.strip().partition(" ")
        if command not in ("", "bt"):
            raise gdb.GdbError("Usage: weir tasks [bt [ARGUMENTS OF backtrace]]")
        records = [t for t in all_records() if t["home"] or has_ended(t)]
        now_ns = clock_ns(records)
        for task in records:
            self.show(task, now_ns, rest if command else None)
        print("%d tasks" % len(records))

    def show(self, task, now_ns, backtrace):
        doing, what, since = state(task, now_ns)
        body = task["body"]
        has_body = doing in ("running", "ready", "parked")
        name = body["name"].string() if has_body else ""
        if not name:
            name = task["fn"].format_string(symbols=True, raw=True)
            name = re.sub(r"^.*<(.*)>$", r"\1", name)
        print(("%-31s  %-9s  %-12s  %s" % (name, doing, what, since)).rstrip())
        if backtrace is not None and doing in ("ready", "parked"):
            print(self.unwinder.backtrace(SavedRegisters(body), backtrace))


Weir()
WeirTasks()
