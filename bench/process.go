package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running program, read from /proc.
type process struct{ pid int }

// tick is the unit of the times in /proc/PID/stat, which Linux fixes for user space at a hundredth of a second.
const tick = 10 * time.Millisecond

// cpu returns the processor time that a process used so far; 0 where there is no /proc.
func (p process) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0
	}

	// The program's name, in parentheses, may hold spaces. Behind it, user and system time are the 12th and 13th field.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 13 {
		return 0
	}

	var sum time.Duration

	for _, f := range fields[11:13] {
		if n, err := strconv.ParseInt(string(f), 10, 64); err == nil {
			sum += time.Duration(n) * tick
		}
	}

	return sum
}

// ownCPU returns the processor time that this program used so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}

	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns the resident memory of a process in bytes, at its peak and now; 0 where there is no /proc.
func (p process) memory() (peak, now int64) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return 0, 0
	}

	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}

		n, _ := strconv.ParseInt(fields[1], 10, 64)

		switch fields[0] {
		case "VmHWM:":
			peak = n << 10
		case "VmRSS:":
			now = n << 10
		}
	}

	return peak, now
}
