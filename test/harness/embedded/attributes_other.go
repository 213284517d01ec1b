//go:build !linux

package embedded

import "syscall"

// managerAttributes puts the manager into a session of its own.
func managerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
