package main

import (
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// process is a running program, read from /proc.
type process struct{ pid int }

// cpu returns the processor time that a process used so far; 0 where there is no /proc.
func (p process) cpu() time.Duration {
	of, err := procfs.NewProc(p.pid)
	if err != nil {
		return 0
	}

	stat, err := of.Stat()
	if err != nil {
		return 0
	}

	return time.Duration(stat.CPUTime() * float64(time.Second))
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
	of, err := procfs.NewProc(p.pid)
	if err != nil {
		return 0, 0
	}

	status, err := of.NewStatus()
	if err != nil {
		return 0, 0
	}

	return int64(status.VmHWM), int64(status.VmRSS)
}
