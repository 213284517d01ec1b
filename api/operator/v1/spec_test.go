package v1_test

import (
	"encoding/json"
	"strings"
	"testing"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestSpecsThatCannotBeRead: one scope whose spec is not what the definition asks for keeps nobody from listing the others.
func TestSpecsThatCannotBeRead(t *testing.T) {
	t.Parallel()

	for field, raw := range map[string]string{
		"serviceAccountName": `5`, "allowSubsetProjection": `"yes"`, "workloadInjector": `[]`, "namespaceMembers": `{"a":"b"}`,
		"csvInjector": `{"enable":"x"}`, "restartLabels": `{"a":1}`,
	} {
		list := &operatorv1.NamespaceScopeList{}

		text := `{"items":[{"spec":{"configmapName":"list","` + field + `":` + raw + `}},{"spec":{"configmapName":"other"}}]}`
		if err := json.Unmarshal([]byte(text), list); err != nil || len(list.Items) != 2 {
			t.Errorf("%s: %v", field, err)

			continue
		}

		if spec := &list.Items[0].Spec; !strings.Contains(spec.Unreadable, field) || spec.ConfigmapName != "list" {
			t.Errorf("%s: got %+v", field, spec)
		}

		if list.Items[1].Spec.Unreadable != "" || list.Items[1].Spec.ConfigmapName != "other" {
			t.Errorf("%s: the other scope became %+v", field, list.Items[1].Spec)
		}
	}

	for _, raw := range []string{`{`, `{"spec":{"namespaceMembers":[}}`} {
		if err := json.Unmarshal([]byte(raw), &operatorv1.NamespaceScope{}); err == nil {
			t.Errorf("%s is no JSON", raw)
		}
	}

	for _, raw := range []string{`{}`, `{"spec":null}`, `{"spec":{"serviceAccountName":null,"other":1}}`} {
		nss := &operatorv1.NamespaceScope{}
		if err := json.Unmarshal([]byte(raw), nss); err != nil || nss.Spec.Unreadable != "" {
			t.Errorf("%s: %v, %q", raw, err, nss.Spec.Unreadable)
		}
	}
}
