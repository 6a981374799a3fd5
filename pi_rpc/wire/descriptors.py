"""Standard input and output taken away from everything else in the process.

Light enough to be used before any event loop is imported, so that a handshake can be answered at
once with plain reads and writes.

Promises
- Whatever else reads descriptor 0 finds nothing; whatever else writes to descriptor 1 writes to
  stderr. A stray print or a child process cannot break the wire.
- Neither private descriptor is inherited by a child.
- The open file descriptions, which the parent or a terminal may share, keep their flags.
"""

import fcntl
import os
import select

READ_BYTES = 64 * 1024
"""One read. A pipe holds no more than that unless told to."""
_FIRST_PRIVATE = 3
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class StdioDescriptors:
    """A private pair of descriptors: where input comes from and where output goes."""

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self.input_fd = input_fd
        self.output_fd = output_fd

    @classmethod
    def take(cls) -> "StdioDescriptors":
        """Take over this process's standard input and output.

        Raises OSError when one of them is not open.
        """
        input_fd = fcntl.fcntl(_STDIN, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
        output_fd = fcntl.fcntl(_STDOUT, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, _STDIN)
        try:
            os.dup2(_STDERR, _STDOUT)
        except OSError:
            # There is no stderr. Stray output then goes nowhere.
            os.dup2(nothing, _STDOUT)
        os.close(nothing)
        return cls(input_fd, output_fd)

    def read(self) -> bytes:
        """Wait for some input and return it; empty at the end. Only before a transport reads."""
        while True:
            try:
                return os.read(self.input_fd, READ_BYTES)
            except BlockingIOError:
                # The parent made its end non-blocking, and the flag is shared with ours.
                wait_until_ready(self.input_fd, select.POLLIN)

    def write(self, data: bytes) -> None:
        """Write all of `data`, waiting as long as it takes. Only before a transport writes."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self.output_fd, rest) :]
            except BlockingIOError:
                wait_until_ready(self.output_fd, select.POLLOUT)

    def close(self) -> None:
        """Close both."""
        os.close(self.input_fd)
        os.close(self.output_fd)


def wait_until_ready(fd: int, events: int) -> None:
    """Block this thread until `fd` may be read (POLLIN) or written (POLLOUT)."""
    poll = select.poll()
    poll.register(fd, events)
    poll.poll()
