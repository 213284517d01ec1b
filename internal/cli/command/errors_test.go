package command_test

import (
	"errors"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli/command"
)

// TestOneLine: the message of an error is one line, and no error stays none.
func TestOneLine(t *testing.T) {
	t.Parallel()

	err := errors.New("refused:\n  a\r\n  b")
	if got := command.OneLine(err); got.Error() != "refused: a b" || !errors.Is(got, err) {
		t.Errorf("it is %v", got)
	}

	if got := command.OneLine(nil); got != nil {
		t.Errorf("of no error it is %#v", got)
	}
}
