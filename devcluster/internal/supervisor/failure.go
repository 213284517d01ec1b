package supervisor

import (
	"fmt"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/process"
)

// exitError says that a component ended though it should not have.
type exitError struct {
	process *process.Process
	when    string
}

func (e *exitError) Error() string {
	return fmt.Sprintf("%s %s (%s): %s; its log is %s",
		e.process.Name, e.when, e.process.Ended(), e.process.LastWords(), e.process.Log)
}

// notReadyError says that a component runs but does not become ready.
type notReadyError struct {
	process *process.Process
	after   time.Duration
	last    error
}

func (e *notReadyError) Error() string {
	return fmt.Sprintf("%s was not ready after %s (%v): %s; its log is %s",
		e.process.Name, e.after.Round(time.Second), e.last, e.process.LastWords(), e.process.Log)
}

func (e *notReadyError) Unwrap() error { return e.last }
