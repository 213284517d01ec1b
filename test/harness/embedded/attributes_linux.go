package embedded

import "syscall"

// managerAttributes puts the manager into a session of its own, and makes the kernel end it with this process.
func managerAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
