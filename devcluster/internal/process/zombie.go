package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// IsZombie tells whether a process has ended and nobody has collected its exit
// code yet. It fails where /proc does not tell, be it that there is no such
// process or no /proc.
func IsZombie(pid int) (bool, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z"), nil
}
