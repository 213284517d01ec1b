package apply

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-k8s/ambit/internal/plan"
)

// TestHangingEnds: a namespace is left alone for as long as what hung there is worth, and what hangs elsewhere is no concern of
// it.
func TestHangingEnds(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var (
			h      = newBreaker(time.Now)
			create = &plan.Change{Action: plan.Create, Namespace: "m"}
			failed = fmt.Errorf("create: %w", errors.New("it hangs"))
			try    = func(c *plan.Change, took time.Duration, err error) {
				began := time.Now()
				time.Sleep(took)
				h.note(c, began, err)
			}
		)

		try(create, longTime-1, failed)

		if err := h.of(create); err != nil {
			t.Errorf("what fails soon is tried again: %v", err)
		}

		try(create, longTime, failed)

		for name, c := range map[string]*plan.Change{
			"another namespace": {Action: plan.Create, Namespace: "n"},
			"an update":         {Action: plan.Update, Namespace: "m"},
			"a deletion":        {Action: plan.Delete, Namespace: "m"},
			"the whole cluster": {Action: plan.Create},
		} {
			if err := h.of(c); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}

		time.Sleep(backOff*longTime - 1)

		if h.of(create) == nil {
			t.Error("it is tried again too soon")
		}

		time.Sleep(time.Nanosecond)

		if err := h.of(create); err != nil {
			t.Errorf("it is tried again: %v", err)
		}

		try(create, longTime, failed)
		try(create, longTime, nil)

		if err := h.of(create); err != nil {
			t.Errorf("what takes long and succeeds does not hang: %v", err)
		}
	})
}
