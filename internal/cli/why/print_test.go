package why

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// TestAnswers holds that only an answer is called one: yes, no, and what is unknown.
func TestAnswers(t *testing.T) {
	t.Parallel()

	account := explain.Account{Namespace: "ops", Name: "op"}
	question := &explain.Question{Verb: "get", Resource: "secrets"}
	unread := []explain.Right{{
		Binding: explain.Ref{Kind: "RoleBinding", Namespace: "m", Name: "b"}, Role: explain.Ref{Kind: "ClusterRole", Name: "r"},
		Problem: "you may not read the ClusterRole, so what it gives is unknown",
	}}

	for name, tc := range map[string]struct {
		data     Data
		text     string
		not      string
		inObject string
	}{
		"yes": {
			Data{Question: question, Allowed: new(true)}, "Yes: Service account ops/op may get secrets", "No:", `"allowed":true`,
		},
		"no": {
			Data{Question: question, Allowed: new(false)}, "No: Service account ops/op may not get", "Yes:", `"allowed":false`,
		},
		"unknown": {
			Data{Question: question}, "Unknown: whether service account ops/op may get", "No:", `"allowed":null`,
		},
		"a role that may not be read": {
			Data{Question: question, Rights: unread}, "you may not read the ClusterRole", "No:", `"allowed":null`,
		},
	} {
		var out bytes.Buffer

		tc.data.Account, tc.data.Namespace = account, "m"

		w := terminal.NewWriter(&out)
		o := &Options{Options: reading.Options{Streams: output.Streams{Out: w, ErrOut: w}}}
		if err := o.table(&tc.data); err != nil {
			t.Fatal(err)
		}

		if text := out.String(); !strings.Contains(text, tc.text) || strings.Contains(text, tc.not) {
			t.Errorf("%s: %s", name, text)
		}

		object, err := json.Marshal(tc.data)
		if err != nil || !strings.Contains(string(object), tc.inObject) {
			t.Errorf("%s: %v: %s", name, err, object)
		}
	}
}
