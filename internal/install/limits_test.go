package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// cached is a CSV as the cache has it.
func cached(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()

	obj := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}

	return &unstructured.Unstructured{Object: obj}
}

// TestSizes: a namespace is over a limit from the first one more, and the limits do not add up to each other.
func TestSizes(t *testing.T) {
	t.Parallel()

	full := Size{MaxCSVs, MaxCSVBytes, MaxAPIs, MaxRights}
	if over := full.Over(); over != "" {
		t.Errorf("as much as may be is too much: %s", over)
	}

	for words, one := range map[string]Size{
		"200 ClusterServiceVersions": {CSVs: 1}, "24 MiB": {Bytes: 1}, "2000 APIs": {APIs: 1}, "50000 single rights": {Rights: 1},
	} {
		if over := full.Plus(one).Over(); !strings.Contains(over, words) {
			t.Errorf("one more is over the limit %q, want %s", over, words)
		}

		if left := full.Plus(one).Minus(one); left != full {
			t.Errorf("without it, left is %+v", left)
		}
	}
}

const described = `
metadata: {name: op.v1, managedFields: [{manager: x}]}
spec:
  description: long
  icon: [{base64data: eA==}]
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: a, kind: A, description: long, specDescriptors: [{path: x}]}, {name: b, kind: B}]
    required: [{name: c, kind: C, displayName: long}]
  apiservicedefinitions: {owned: [{name: d}], required: [{name: e}]}
  nativeAPIs: [{kind: F}]
  install:
    spec:
      permissions:
      - {serviceAccountName: op, rules: [{verbs: [get, list], apiGroups: [""], resources: [pods, secrets]}]}
      - {rules: [{verbs: [get], apiGroups: [""], resources: [pods], resourceNames: [a, b, c]}]}
      clusterPermissions:
      - {serviceAccountName: op, rules: [{verbs: [get], nonResourceURLs: [/a, /b]}]}
`

// TestTrim: what is for users only is not kept, and everything that is kept is counted.
func TestTrim(t *testing.T) {
	t.Parallel()

	csv := cached(t, described)

	size := Trim(csv)
	if size.CSVs != 1 || size.APIs != 6 || size.Rights != 4+3+2 {
		t.Errorf("it counts for %+v", size)
	}

	text, err := json.Marshal(csv.Object)
	if err != nil || strings.Contains(string(text), "long") || strings.Contains(string(text), "base64data") ||
		strings.Contains(string(text), "managedFields") || strings.Contains(string(text), "specDescriptors") {
		t.Errorf("kept are %s, %v", text, err)
	}

	for _, kept := range []string{`"version":"1.0.0"`, `"kind":"A"`, `"kind":"C"`, `"resourceNames":["a","b","c"]`} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%s is lost: %s", kept, text)
		}
	}

	if again := Trim(csv); again != size {
		t.Errorf("once more it counts for %+v, want %+v", again, size)
	}

	larger := cached(t, described)
	larger.SetAnnotations(map[string]string{"a": strings.Repeat("x", 1000)})

	if more := Trim(larger).Minus(size); more.Bytes < 1000 || more.Bytes > 2000 {
		t.Errorf("a thousand characters take %d bytes", more.Bytes)
	}

	many := cached(t, described)
	many.Object["more"] = make([]any, 1000)

	if more := Trim(many).Minus(size); more.Bytes < 16_000 {
		t.Errorf("a thousand values, which take a word and a pointer each, count for %d bytes", more.Bytes)
	}

	keys := cached(t, described)
	of := map[string]any{}

	for i := range 1000 {
		of[fmt.Sprint("k", i)] = int64(i)
	}

	keys.Object["more"] = of

	if more := Trim(keys).Minus(size); more.Bytes < 64_000 {
		t.Errorf("a thousand entries of a map count for %d bytes", more.Bytes)
	}
}

// TestLeaveOut: of a CSV that is too large are kept what identifies it, what shows how far it was, and who holds something in the
// cluster; short, however long it was.
func TestLeaveOut(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 254)
	accounts := []string{"{serviceAccountName: " + long + "}"}

	for i := range 30 {
		accounts = append(accounts, fmt.Sprintf("{serviceAccountName: a%d}", i))
	}

	csv := cached(t, `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  {name: op.v1, namespace: ops, uid: u, resourceVersion: "7", labels: {a: b}, annotations: {c: d},
   creationTimestamp: "2026-01-01T00:00:00Z", deletionTimestamp: "2026-01-02T00:00:00Z"}
status: {phase: Succeeded, reason: `+long[:253]+`, message: `+long+`, conditions: [{phase: Failed}]}
spec: {version: 1.0.0, install: {spec: {deployments: [{name: op}], permissions: [{serviceAccountName: p}],
  clusterPermissions: [`+strings.Join(accounts, ", ")+`]}}}`)

	csv.SetGeneration(3)

	if LeftOut(csv) != "" {
		t.Error("it is left out already")
	}

	LeaveOut(csv, "it is too large")

	if got := LeftOut(csv); got != "it is too large" {
		t.Errorf("it is left out because %q", got)
	}

	status, _, _ := unstructured.NestedMap(csv.Object, "status")
	if len(status) != 2 || status["phase"] != "Succeeded" || status["reason"] != long[:253] {
		t.Errorf("its status is %v", status)
	}

	if csv.GetName() != "op.v1" || csv.GetNamespace() != "ops" || csv.GetUID() != "u" || csv.GetResourceVersion() != "7" ||
		csv.GetGeneration() != 3 || csv.GetKind() != olm.ClusterServiceVersionKind || csv.GetCreationTimestamp().Day() != 1 ||
		csv.GetDeletionTimestamp() == nil || csv.GetDeletionTimestamp().Day() != 2 {
		t.Errorf("nobody knows it again: %v", csv.Object)
	}

	if len(csv.GetLabels())+len(csv.GetAnnotations()) > 0 || IsCopy(csv) || len(AccountsWith(csv, "permissions")) > 0 {
		t.Errorf("more is kept: %v", csv.Object)
	}

	got := AccountsWith(csv, "clusterPermissions")
	if len(got) != 19 || got[0] != "a0" || got[18] != "a18" {
		t.Errorf("those who hold something in the cluster are %v", got)
	}

	copied := cached(t, `{metadata: {name: a, labels: {olm.copiedFrom: `+long+`}}}`)
	if LeaveOut(copied, "why"); !IsCopy(copied) || copied.GetLabels()[olm.CopiedLabelKey] != "" {
		t.Errorf("a copy is still one, and no longer than that: %v", copied.Object)
	}

	if _, found, _ := unstructured.NestedFieldNoCopy(copied.Object, "spec"); found {
		t.Errorf("nobody holds anything, and it says who: %v", copied.Object)
	}
}

// TestWhatRunsIsKept: what has been installed is kept rather than what has not.
func TestWhatRunsIsKept(t *testing.T) {
	t.Parallel()

	for phase, want := range map[olm.ClusterServiceVersionPhase]bool{
		olm.CSVPhaseSucceeded: true, olm.CSVPhaseInstalling: true, olm.CSVPhaseReplacing: true, olm.CSVPhaseDeleting: true,
		olm.CSVPhasePending: false, olm.CSVPhaseInstallReady: false, olm.CSVPhaseFailed: false, olm.CSVPhaseNone: false,
		olm.CSVPhaseUnknown: false,
	} {
		csv := scope.NewOLM(scope.KindCSV)
		csv.Object["status"] = map[string]any{"phase": string(phase)}

		if got := Runs(csv); got != want {
			t.Errorf("in phase %q it runs: %t", phase, got)
		}
	}
}

// FuzzCachedCSV: the definition of ClusterServiceVersions accepts nearly everything, and nothing of that may end a watch.
func FuzzCachedCSV(f *testing.F) {
	for _, text := range []string{
		described, `{}`, `{spec: 1}`,
		`{spec: {customresourcedefinitions: [], nativeAPIs: {}, install: {spec: {permissions: [1, {rules: 1}]}}}}`,
		`{spec: {customresourcedefinitions: {owned: [1, null]}, install: {spec: {clusterPermissions: [{rules: [1, {verbs: [1]}]}]}}}}`,
		`{status: 1, metadata: {labels: 1}}`, `{metadata: {labels: {olm.copiedFrom: 1}, name: 1}}`, `{status: {phase: 1, reason: {}}}`,
		`{spec: {install: {spec: {clusterPermissions: [{serviceAccountName: 1}, null]}}}}`,
	} {
		obj := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
			f.Fatal(err)
		}

		raw, err := json.Marshal(obj)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(raw)
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		obj := &unstructured.Unstructured{}
		if json.Unmarshal(raw, &obj.Object) != nil || obj.Object == nil {
			return
		}

		size := Trim(obj)
		if size.CSVs != 1 || size.APIs < 0 || size.Rights < 0 || size.Bytes <= 0 {
			t.Errorf("%s counts for %+v", raw, size)
		}

		if accounts := AccountsWith(obj, "clusterPermissions"); len(accounts) > 0 {
			before := slices.Clone(accounts)

			LeaveOut(obj, "why")

			for _, kept := range AccountsWith(obj, "clusterPermissions") {
				if !slices.Contains(before, kept) {
					t.Errorf("%s: account %q was not there", raw, kept)
				}
			}
		}

		LeaveOut(obj, "why")

		if left := Trim(obj); left.Bytes > 1<<15 || LeftOut(obj) != "why" {
			t.Errorf("%s is left out, and still takes %d bytes", raw, left.Bytes)
		}

		_, _ = Read(obj)
		_ = Runs(obj)
	})
}
