package guard_test

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// The scopes that are there, and the accounts that they name.
const (
	own       = "names-none"
	delegated = "names-writer"
	writer    = "writer"
	other     = "other"
	// fresh is the name of a scope that a request makes.
	fresh = "fresh"
	// tool is the field manager that wrote the spec of the scopes that are there.
	tool = "a-tool"
)

// authority is what somebody needs for a change of a spec.
type authority string

const (
	asAmbit  authority = "escalate clusterroles"
	asWriter authority = "use the account writer"
	asOther  authority = "use the account other"
	// asManual is about the account that manualManagement means.
	asManual authority = "use the account ambit of the namespace"
	// toRelease is about Ambit's finalizer.
	toRelease authority = "be Ambit, impersonate all accounts, or escalate clusterroles"
)

// policyOf names the policy that asks for an authority.
func policyOf(a authority) string {
	switch a {
	case asAmbit:
		return ownIdentity
	case toRelease:
		return finalizerGuard
	default:
		return delegateIdentity
	}
}

// request is a client of somebody for the scopes of one group, and how to use it.
type request struct {
	context.Context
	dynamic.ResourceInterface

	resource schema.GroupVersionResource
	// dryRun is for the options; nil is for real.
	dryRun []string
}

type operation struct {
	reason string
	// group is that of the scope; empty is operator.ibm.com.
	group string
	do    func(r *request) error
	// verbs are what RBAC has to allow.
	verbs []string
	// needs are the authorities that the policies ask for.
	needs []authority
}

var (
	creates = []string{"create"}
	updates = []string{"update"}
	patches = []string{"patch"}
	applies = []string{"patch", "create"}
	deletes = []string{"delete"}
)

// selector is a spec that adds members by label.
var selector = map[string]any{"namespaceSelector": map[string]any{"team": "a"}}

// operations are the ways to write a scope.
var operations = map[string]operation{
	"CreateNamingNone": {
		reason: "Ambit would write with its own rights",
		do:     create(fresh, map[string]any{"namespaceMembers": []any{"team-a"}}), verbs: creates, needs: []authority{asAmbit},
	},
	"CreateEmptySpec": {
		reason: "a spec with nothing in it names no account",
		do:     create(fresh, map[string]any{}), verbs: creates, needs: []authority{asAmbit},
	},
	"CreateWithoutSpec": {
		reason: "neither does no spec",
		do:     create(fresh, nil), verbs: creates, needs: []authority{asAmbit},
	},
	"CreateNullAccount": {
		reason: "null is a field left out",
		do:     create(fresh, map[string]any{account: nil}), verbs: creates, needs: []authority{asAmbit},
	},
	"CreateMisspelledAccount": {
		reason: "a field that the API does not know is dropped, and then no account is named",
		do:     create(fresh, map[string]any{"serviceaccountname": writer}), verbs: creates, needs: []authority{asAmbit},
	},
	"CreateNamingAccount": {
		reason: "everything is written as that account, so its author has to be allowed to use it",
		do:     create(fresh, map[string]any{account: writer}), verbs: creates, needs: []authority{asWriter},
	},
	"CreateNamingOtherAccount": {
		reason: "the right to use one account says nothing about another",
		do:     create(fresh, map[string]any{account: other}), verbs: creates, needs: []authority{asOther},
	},
	"GenerateNameNamingNone": {
		reason: "a name that the API server makes up changes nothing",
		do:     generate(map[string]any{}), verbs: creates, needs: []authority{asAmbit},
	},
	"GenerateNameNamingAccount": {
		reason: "a name that the API server makes up changes nothing",
		do:     generate(map[string]any{account: writer}), verbs: creates, needs: []authority{asWriter},
	},
	"ApplyNewNamingNone": {
		reason: "server-side apply of what is not there creates it",
		do:     apply(fresh, map[string]any{}), verbs: applies, needs: []authority{asAmbit},
	},
	"ApplyNewNamingAccount": {
		reason: "server-side apply of what is not there creates it",
		do:     apply(fresh, map[string]any{account: writer}), verbs: applies, needs: []authority{asWriter},
	},

	"UpdateMembersNamingNone": {
		reason: "members decide where Ambit's own rights are used",
		do:     update(own, members), verbs: updates, needs: []authority{asAmbit},
	},
	"MergePatchMembersNamingNone": {
		reason: "a patch that does not mention the account is about a scope without one all the same",
		do:     patch(own, types.MergePatchType, `{"spec":{"namespaceMembers":["kube-system"]}}`),
		verbs:  patches, needs: []authority{asAmbit},
	},
	"JSONPatchMembersNamingNone": {
		reason: "the same by another kind of patch",
		do:     patch(own, types.JSONPatchType, `[{"op":"add","path":"/spec/namespaceMembers","value":["kube-system"]}]`),
		verbs:  patches, needs: []authority{asAmbit},
	},
	"ApplyMembersNamingNone": {
		reason: "the same by server-side apply, by a field manager of one's own",
		do:     apply(own, selector), verbs: patches, needs: []authority{asAmbit},
	},
	"NameAnAccountFromNowOn": {
		reason: "what was written with Ambit's rights must not be left to an account that cannot take it back",
		do:     patch(own, types.MergePatchType, `{"spec":{"serviceAccountName":"writer"}}`),
		verbs:  patches, needs: []authority{asAmbit, asWriter},
	},

	"UpdateMembersNamingAccount": {
		reason: "members decide where the account's rights are used",
		do:     update(delegated, members), verbs: updates, needs: []authority{asWriter},
	},
	"MergePatchMembersNamingAccount": {
		reason: "the account is used, also where the patch does not mention it",
		do:     patch(delegated, types.MergePatchType, `{"spec":{"namespaceMembers":["kube-system"]}}`),
		verbs:  patches, needs: []authority{asWriter},
	},
	"ApplyMembersNamingAccount": {
		reason: "the account is used, also where what is applied does not mention it",
		do:     apply(delegated, selector), verbs: patches, needs: []authority{asWriter},
	},
	"UpdateOtherAccount": {
		reason: "the account that counts is the one that will write from now on",
		do: update(delegated, func(scope *unstructured.Unstructured) error {
			return unstructured.SetNestedField(scope.Object, other, "spec", account)
		}),
		verbs: updates, needs: []authority{asOther},
	},
	"MergePatchOtherAccount": {
		reason: "the account that counts is the one that will write from now on",
		do:     patch(delegated, types.MergePatchType, `{"spec":{"serviceAccountName":"other"}}`),
		verbs:  patches, needs: []authority{asOther},
	},
	"ApplyOtherAccount": {
		reason: "the account that counts is the one that will write from now on",
		do:     apply(delegated, map[string]any{account: other}), verbs: patches, needs: []authority{asOther},
	},
	"UpdateWithoutAccount": {
		reason: "without its account, the scope would be written with Ambit's own rights",
		do: update(delegated, func(scope *unstructured.Unstructured) error {
			unstructured.RemoveNestedField(scope.Object, "spec", account)

			return nil
		}),
		verbs: updates, needs: []authority{asAmbit},
	},
	"MergePatchAccountAway": {
		reason: "null removes a field",
		do:     patch(delegated, types.MergePatchType, `{"spec":{"serviceAccountName":null}}`),
		verbs:  patches, needs: []authority{asAmbit},
	},
	"MergePatchSpecAway": {
		reason: "with the spec goes the account",
		do:     patch(delegated, types.MergePatchType, `{"spec":null}`), verbs: patches, needs: []authority{asAmbit},
	},
	"JSONPatchSpecAway": {
		reason: "with the spec goes the account",
		do:     patch(delegated, types.JSONPatchType, `[{"op":"remove","path":"/spec"}]`), verbs: patches, needs: []authority{asAmbit},
	},
	"ApplyAccountAway": {
		reason: "a field that its only field manager leaves out is removed; no word of the request says so",
		do:     applyAs(tool, delegated, map[string]any{"namespaceMembers": []any{"team-a"}}),
		verbs:  patches, needs: []authority{asAmbit},
	},

	"LabelNamingNone": {
		reason: "metadata does not change what a scope does",
		do:     patch(own, types.MergePatchType, `{"metadata":{"labels":{"team":"a"}}}`), verbs: patches,
	},
	"AnnotateNamingAccount": {
		reason: "metadata does not change what a scope does",
		do:     patch(delegated, types.MergePatchType, `{"metadata":{"annotations":{"note":"hello"}}}`), verbs: patches,
	},
	"UpdateFinalizerNamingNone": {
		reason: "Ambit holds and releases every scope by its finalizer",
		do:     update(own, finalizer), verbs: updates,
	},
	"UpdateFinalizerNamingAccount": {
		reason: "Ambit holds and releases every scope by its finalizer",
		do:     update(delegated, finalizer), verbs: updates,
	},
	"ReleaseNamingNone": {
		reason: "Ambit holds and releases every scope by its finalizer, and nobody else does",
		do:     patch(own, types.MergePatchType, `{"metadata":{"finalizers":null}}`), verbs: patches, needs: []authority{toRelease},
	},
	"ReleaseNamingAccount": {
		reason: "neither does whoever may use the account: what it wrote would be left",
		do:     update(delegated, release), verbs: updates, needs: []authority{toRelease},
	},
	"ReleaseOlder": {
		reason: "nor in the older group", group: olderGroup,
		do: patch(own, types.JSONPatchType, `[{"op":"remove","path":"/metadata/finalizers"}]`), verbs: patches,
		needs: []authority{toRelease},
	},
	"FinalizerBesideAmbits": {
		reason: "others may hold a scope as well",
		do: update(own, func(scope *unstructured.Unstructured) error {
			scope.SetFinalizers(append(scope.GetFinalizers(), "guard.test/hold"))

			return nil
		}), verbs: updates,
	},
	"UpdateNothing": {
		reason: "saying again what is there changes nothing",
		do:     update(own, func(*unstructured.Unstructured) error { return nil }), verbs: updates,
	},
	"MergePatchTheSame": {
		reason: "saying again what is there changes nothing",
		do:     patch(own, types.MergePatchType, `{"spec":{"namespaceMembers":["team-a"]}}`), verbs: patches,
	},
	"ApplyTheSame": {
		reason: "owning a field is not changing it",
		do:     apply(delegated, map[string]any{account: writer}), verbs: patches,
	},

	"DeleteNamingNone": {
		reason: "the end of a scope only takes rights away, and RBAC says who may",
		do:     remove(own), verbs: deletes,
	},
	"DeleteNamingAccount": {
		reason: "the end of a scope only takes rights away, and RBAC says who may",
		do:     remove(delegated), verbs: deletes,
	},
}

func create(name string, spec map[string]any) func(*request) error {
	return func(r *request) error {
		_, err := r.Create(r, object(r.resource, name, maps.Clone(spec)), metav1.CreateOptions{DryRun: r.dryRun})

		return err
	}
}

func generate(spec map[string]any) func(*request) error {
	return func(r *request) error {
		scope := object(r.resource, "", maps.Clone(spec))
		scope.SetGenerateName(fresh + "-")

		_, err := r.Create(r, scope, metav1.CreateOptions{DryRun: r.dryRun})

		return err
	}
}

func patch(name string, kind types.PatchType, body string) func(*request) error {
	return func(r *request) error {
		_, err := r.Patch(r, name, kind, []byte(body), metav1.PatchOptions{DryRun: r.dryRun})

		return err
	}
}

func apply(name string, spec map[string]any) func(*request) error {
	return applyAs("another-tool", name, spec)
}

func applyAs(manager, name string, spec map[string]any) func(*request) error {
	return func(r *request) error {
		_, err := r.Apply(r, name, object(r.resource, name, maps.Clone(spec)), metav1.ApplyOptions{
			FieldManager: manager, Force: true, DryRun: r.dryRun,
		})

		return err
	}
}

// update writes the whole object. Ambit may write it at the same time, hence the retries.
func update(name string, edit func(*unstructured.Unstructured) error) func(*request) error {
	return func(r *request) error {
		return retry.RetryOnConflict(embedded.Conflicts, func() error {
			scope, err := r.Get(r, name, metav1.GetOptions{})
			if err != nil {
				return err
			}

			if err := edit(scope); err != nil {
				return err
			}

			_, err = r.Update(r, scope, metav1.UpdateOptions{DryRun: r.dryRun})

			return err
		})
	}
}

func remove(name string) func(*request) error {
	return func(r *request) error {
		return r.Delete(r, name, metav1.DeleteOptions{DryRun: r.dryRun})
	}
}

func members(scope *unstructured.Unstructured) error {
	return unstructured.SetNestedStringSlice(scope.Object, []string{"kube-system"}, "spec", "namespaceMembers")
}

func release(scope *unstructured.Unstructured) error {
	scope.SetFinalizers(nil)

	return nil
}

func finalizer(scope *unstructured.Unstructured) error {
	scope.SetFinalizers([]string{"finalizer.nss.operator.ibm.com"})

	return nil
}
