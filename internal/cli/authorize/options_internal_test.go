package authorize

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/cli/command"
)

// TestWhatLostTheAPIServerIsToBeRepeated holds that a change in whose middle the API server went away says what to do about that,
// and that what is refused does not say to try it again.
func TestWhatLostTheAPIServerIsToBeRepeated(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}

	for _, c := range []struct {
		err    error
		repeat bool
	}{
		{&url.Error{Op: "Patch", URL: "https://127.0.0.1/", Err: errors.New("connection reset by peer")}, true},
		{apierrors.NewServiceUnavailable("the server is currently unable to handle the request"), true},
		{apierrors.NewGenericServerResponse(502, "patch", roles, "a", "<html>\n<h1>502 Bad Gateway</h1>", 0, true), true},
		{apierrors.NewTooManyRequests("too many requests", 1), true},
		{apierrors.NewForbidden(roles, "a", errors.New("no")), false},
		{apierrors.NewConflict(roles, "a", errors.New("somebody was faster")), false},
		{errors.New("2 objects that the scope projected are still there"), false},
	} {
		o := &GrantOptions{DryRun: dryRunNone}
		failed := fmt.Errorf("granting a Role: %w", command.OneLine(c.err))

		err := o.carryOut(func() error { return nil }, func() error { return errors.Join(failed) })
		if got := strings.HasSuffix(err.Error(), "run this again to complete it"); got != c.repeat || !errors.Is(err, c.err) {
			t.Errorf("%v", err)
		}

		if err = o.carryOut(func() error { return failed }, nil); err.Error() != failed.Error() {
			t.Errorf("a dry run that failed: %v", err)
		}
	}

	if err := (&GrantOptions{DryRun: dryRunNone}).carryOut(func() error { return nil }, func() error { return nil }); err != nil {
		t.Error(err)
	}
}
