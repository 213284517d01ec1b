package testbed

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/kubernetes"
)

// Watching counts the watches of a resource within single namespaces that are open at the API server, of whomever.
func (w *World) Watching(resource string) int {
	w.Helper()

	clients, err := kubernetes.NewForConfig(w.Config)
	if err != nil {
		w.Fatal(err)
	}

	raw, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(w.Context())
	if err != nil {
		w.Fatal(err)
	}

	open := 0

	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "apiserver_longrunning_requests{") || !strings.Contains(line, `verb="WATCH"`) ||
			!strings.Contains(line, `resource="`+resource+`"`) || !strings.Contains(line, `scope="namespace"`) {
			continue
		}

		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, '}')+1:]), 64)
		if err != nil {
			w.Fatalf("reading %q: %v", line, err)
		}

		open += int(n)
	}

	return open
}

// forgetPeak resets Peak, by writing 5 (proc_pid_clear_refs(5)).
func (w *World) forgetPeak() {
	w.Helper()

	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.Manager.PID()), []byte("5"), 0); err != nil {
		w.Logf("the peak is that of all tests before: %v", err)
	}
}

// Peak is the most memory, in bytes, that the manager has had since it began.
func (w *World) Peak() int {
	w.Helper()

	process, err := procfs.NewProc(w.Manager.PID())
	if err != nil {
		w.Skipf("what a process uses can only be read on Linux: %v", err)
	}

	status, err := process.NewStatus()
	if err != nil || status.VmHWM == 0 {
		w.Skipf("what a process uses at most is not told here: %v", err)
	}

	return int(status.VmHWM) //nolint:gosec // No process has as many bytes.
}
