package discovered_test

import (
	"testing"

	"github.com/ambit-k8s/ambit/internal/discovered"
)

// TestVerbNote: a verb that nobody has looks like a right that nobody has.
func TestVerbNote(t *testing.T) {
	t.Parallel()

	for verb, noted := range map[string]bool{
		"get": false, "deletecollection": false, "*": false, "escalate": false, "impersonate": false,
		"impersonate:serviceaccount": false, "impersonate:user-info": false, "impersonate-on:serviceaccount:list": false,
		"GET": true, "get,list": true, "read": true, "impersonate:": true,
	} {
		if got := discovered.VerbNote(verb); (got != "") != noted {
			t.Errorf("%q: %q, want a note: %t", verb, got, noted)
		}
	}
}
