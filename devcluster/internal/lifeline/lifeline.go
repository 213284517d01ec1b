// Package lifeline ties the life of a child process to that of the process
// which started it. It works on every Unix; a signal on the death of the
// parent, which would be simpler, exists on Linux only.
//
// The parent keeps the writing end of a pipe open and never writes to it; the
// child inherits the reading end. Whatever way the parent ends, SIGKILL
// included, the kernel closes the writing end and the child reads an
// end-of-file. Nothing has to be cleaned up by a process that is already dead.
package lifeline

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// EnvFD names the environment variable that tells a child which of its
// inherited file descriptors is the reading end of the pipe.
const EnvFD = "DEVCLUSTER_LIFELINE_FD"

// exitOrphaned is the exit code of a child whose parent is gone. No log line
// accompanies it that anybody would still read, so the code has to be
// recognizable by itself.
const exitOrphaned = 86

// Watch ends this process as soon as the parent is gone. It does nothing in a
// process that was started by hand, which has no such variable set.
//
// It must be the first call in main, so that even a child which hangs while
// it starts does not outlive its parent.
func Watch() {
	value := os.Getenv(EnvFD)
	if value == "" {
		return
	}
	// The processes this one starts do not get the descriptor, so they must
	// not be told about it either.
	if err := os.Unsetenv(EnvFD); err != nil {
		failf("cannot unset %s: %v", EnvFD, err)
	}
	fd, err := strconv.ParseUint(value, 10, 16)
	if err != nil || fd <= 2 {
		failf("%s=%q is not an inherited file descriptor; unset it to run this program by hand", EnvFD, value)
	}
	pipe := os.NewFile(uintptr(fd), "lifeline")
	if pipe == nil {
		failf("%s=%q is not an open file descriptor; unset it to run this program by hand", EnvFD, value)
	}
	syscall.CloseOnExec(int(fd))
	go func() {
		// The parent never writes: Read returns only at the end of the pipe
		// (or with an error, which means the same for this process).
		_, _ = pipe.Read(make([]byte, 1))
		os.Exit(exitOrphaned)
	}()
}

func failf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "lifeline: "+format+"\n", args...)
	os.Exit(2)
}
