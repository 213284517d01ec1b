package testbed

import (
	"fmt"
	"os"
	"strings"
)

// Reborn kills Ambit and starts it again, and waits until one of its controllers works: a life that ended before would be none.
func (w *World) Reborn(controller string) {
	w.Helper()

	if err := w.Manager.Kill(); err != nil {
		w.Fatalf("killing the manager: %v", err)
	}

	past, err := os.ReadFile(w.Manager.Log)
	if err != nil {
		w.Fatal(err)
	}

	if err := w.Manager.Start(); err != nil {
		w.Fatalf("starting the manager: %v", err)
	}

	works := fmt.Sprintf(`"Starting workers" controller=%q`, controller)

	w.Eventually("Ambit works again", func() error {
		log, err := os.ReadFile(w.Manager.Log)
		if err == nil && !strings.Contains(string(log[len(past):]), works) {
			err = fmt.Errorf("its log does not say %s", works)
		}

		return err
	})
}
