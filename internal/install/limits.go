package install

import (
	"fmt"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// What is kept of the ClusterServiceVersions of one namespace: whoever may write there decides how much that is, and all other
// namespaces share the memory and the time that it costs.
const (
	MaxCSVs = 200
	// MaxCSVBytes bounds what they take in memory, without what is not looked at, such as descriptions and icons.
	MaxCSVBytes = 24 << 20
	// MaxAPIs bounds the APIs that they bring and need.
	MaxAPIs = 2_000
	// MaxRights bounds the single rights that their permissions stand for, as package rights counts them.
	MaxRights = 50_000
)

// ReasonLimit is the reason of a CSV that is over a limit of its namespace.
const ReasonLimit olm.ConditionReason = "LimitExceeded"

// leftOutField is the field of the cache's copy of a CSV that says why the rest of it is not kept. The API server has no such
// field.
const leftOutField = "ambit.dev/left-out"

// Size is what a CSV counts for.
type Size struct{ CSVs, Bytes, APIs, Rights int }

// Plus returns the sum of two sizes, and Minus the difference.
func (s Size) Plus(o Size) Size {
	return Size{s.CSVs + o.CSVs, s.Bytes + o.Bytes, s.APIs + o.APIs, s.Rights + o.Rights}
}

// Minus is explained at Plus.
func (s Size) Minus(o Size) Size {
	return Size{s.CSVs - o.CSVs, s.Bytes - o.Bytes, s.APIs - o.APIs, s.Rights - o.Rights}
}

// Over says which limit is exceeded, in words; empty when none is.
func (s Size) Over() string {
	switch {
	case s.CSVs > MaxCSVs:
		return fmt.Sprintf("the limit of a namespace is %d ClusterServiceVersions", MaxCSVs)
	case s.Bytes > MaxCSVBytes:
		return fmt.Sprintf("the limit for all ClusterServiceVersions of a namespace is %d MiB in memory", MaxCSVBytes>>20)
	case s.APIs > MaxAPIs:
		return fmt.Sprintf("the limit for all ClusterServiceVersions of a namespace is %d APIs that they own and require", MaxAPIs)
	case s.Rights > MaxRights:
		return fmt.Sprintf("the limit for all ClusterServiceVersions of a namespace is %d single rights in their permissions: a verb "+
			"on a resource of an API group each", MaxRights)
	default:
		return ""
	}
}

// Trim takes out of a CSV, as the cache is about to keep it, what is for users only, and says how much is left.
func Trim(csv *unstructured.Unstructured) Size {
	csv.SetManagedFields(nil)

	spec, _ := csv.Object["spec"].(map[string]any)
	without(spec, "description", "displayName", "icon", "keywords", "links", "maintainers", "maturity", "provider", "relatedImages")

	size := Size{CSVs: 1}

	for _, kind := range []string{"customresourcedefinitions", "apiservicedefinitions"} {
		defined, _ := spec[kind].(map[string]any)

		for _, list := range []string{"owned", "required"} {
			items, _ := defined[list].([]any)

			for _, item := range items {
				api, _ := item.(map[string]any)
				without(api, "description", "displayName", "resources", "specDescriptors", "statusDescriptors", "actionDescriptors")
			}

			size.APIs += len(items)
		}
	}

	native, _ := spec["nativeAPIs"].([]any)
	size.APIs += len(native)

	for _, field := range []string{"permissions", "clusterPermissions"} {
		size.Rights += rightsOf(csv, field)
	}

	size.Bytes = weight(csv.Object) + itemBytes*max(0, countItems(csv.Object)-fewItems)

	return size
}

const (
	// fewItems is how many items the lists of a CSV have at the most that somebody means.
	fewItems = 10_000
	// itemBytes is what each further one counts for: in Go's types an item may take hundreds of bytes, and there are several copies
	// while Deployments are made.
	itemBytes = 256
)

// countItems counts the items of all lists in a value of JSON.
func countItems(value any) int {
	sum := 0

	switch v := value.(type) {
	case []any:
		for _, item := range v {
			sum += 1 + countItems(item)
		}
	case map[string]any:
		for _, item := range v {
			sum += countItems(item)
		}
	}

	return sum
}

// rightsOf counts what the permissions of a CSV stand for. Nothing is broken down for that, so it comes first.
func rightsOf(csv *unstructured.Unstructured, field string) int {
	sum := 0

	for _, of := range strategyItems(csv, field) {
		rules, _ := of["rules"].([]any)

		for _, rule := range rules {
			r, _ := rule.(map[string]any)
			sum += rights.Count([]rbacv1.PolicyRule{{
				Verbs: texts(r, "verbs"), APIGroups: texts(r, "apiGroups"), Resources: texts(r, "resources"),
				ResourceNames: texts(r, "resourceNames"), NonResourceURLs: texts(r, "nonResourceURLs"),
			}})
		}
	}

	return sum
}

func texts(object map[string]any, field string) []string {
	list, _ := object[field].([]any)
	out := make([]string, 0, len(list))

	for _, item := range list {
		if s, is := item.(string); is {
			out = append(out, s)
		}
	}

	return out
}

func without(object map[string]any, fields ...string) {
	for _, field := range fields {
		delete(object, field)
	}
}

const (
	// maxShort is how long a phase, a reason or the name of an account can be that means something.
	maxShort = 253
	// maxAccounts bounds the accounts that are kept of a CSV that is left out.
	maxAccounts = 20
)

// LeaveOut empties a CSV of all but its identity, the short texts of its status, and the accounts that have clusterPermissions,
// which show what it holds already; and notes why.
func LeaveOut(csv *unstructured.Unstructured, why string) {
	left := Identity(csv)

	if IsCopy(csv) {
		left.SetLabels(map[string]string{olm.CopiedLabelKey: ""})
	}

	status, _ := csv.Object["status"].(map[string]any)
	short := map[string]any{}

	for _, field := range []string{"phase", "reason", "message"} {
		if s, ok := status[field].(string); ok && len(s) <= maxShort {
			short[field] = strings.Clone(s)
		}
	}

	left.Object["status"], left.Object[leftOutField] = short, why

	if accounts := clusterAccounts(csv); len(accounts) > 0 {
		_ = unstructured.SetNestedSlice(left.Object, accounts, strategyField("clusterPermissions")...) // There is nothing in the way.
	}

	csv.Object = left.Object
}

func strategyField(name string) []string { return []string{"spec", "install", "spec", name} }

// strategyItems are those of a list of the install strategy, as far as they can be read: empty where one is no object.
func strategyItems(csv *unstructured.Unstructured, name string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(csv.Object, strategyField(name)...)
	items, _ := list.([]any)
	out := make([]map[string]any, len(items))

	for i := range items {
		out[i], _ = items[i].(map[string]any)
	}

	return out
}

func clusterAccounts(csv *unstructured.Unstructured) []any {
	var accounts []any

	all := AccountsWith(csv, "clusterPermissions")
	for _, name := range all[:min(len(all), maxAccounts)] {
		if len(name) <= maxShort {
			accounts = append(accounts, map[string]any{"serviceAccountName": strings.Clone(name)})
		}
	}

	return accounts
}

// AccountsWith are the accounts that a CSV, as the cache has it, asks for permissions or clusterPermissions for, as far as that
// can be read. One that is not named is empty.
func AccountsWith(csv *unstructured.Unstructured, permissions string) []string {
	return collect.Map(strategyItems(csv, permissions), func(a map[string]any) string { return text(a, "serviceAccountName") })
}

// LeftOut says why a CSV is not kept; empty when it is.
func LeftOut(csv *unstructured.Unstructured) string {
	why, _ := csv.Object[leftOutField].(string)

	return why
}

// Runs says whether a CSV has been installed, going by its status. What runs is kept rather than what does not.
func Runs(csv *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase")

	switch olm.ClusterServiceVersionPhase(phase) {
	case olm.CSVPhaseSucceeded, olm.CSVPhaseInstalling, olm.CSVPhaseReplacing, olm.CSVPhaseDeleting:
		return true
	default:
		return false
	}
}

// weight is about how many bytes of memory a value of JSON takes. Many small values take a multiple of their text.
func weight(value any) int {
	const header, entry = 16, 64

	switch v := value.(type) {
	case string:
		return header + len(v)
	case []any:
		sum := header + entry
		for _, item := range v {
			sum += header + weight(item)
		}

		return sum
	case map[string]any:
		sum := entry
		for key, item := range v {
			sum += entry + len(key) + weight(item)
		}

		return sum
	default:
		return header
	}
}
