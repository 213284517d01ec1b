package guard_test

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// manualField is the field by which a scope that names no account is written as the account ambitHere.
	manualField = "manualManagement"
	ambitHere   = "ambit"
	// manual is the scope, in each group, that has the field.
	manual = "is-manual"
	// olderGroup has the field manualManagement, and none that names an account.
	olderGroup = "namespacescope.ibm.com"
)

// manualOperations are the ways to write a scope that have to do with manualManagement, and those of the legacy group.
var manualOperations = map[string]operation{
	"CreateManual": {
		reason: "manualManagement means the account ambit of the scope's namespace",
		do:     create(fresh, map[string]any{manualField: true}), verbs: creates, needs: []authority{asManual},
	},
	"CreateNotManual": {
		reason: "false is as good as left out",
		do:     create(fresh, map[string]any{manualField: false}), verbs: creates, needs: []authority{asAmbit},
	},
	"CreateManualNamingAccount": {
		reason: "an account that is named is the one that writes, also with manualManagement",
		do:     create(fresh, map[string]any{manualField: true, account: writer}), verbs: creates, needs: []authority{asWriter},
	},
	"CreateNamingAmbit": {
		reason: "to name the account is the same as manualManagement",
		do:     create(fresh, map[string]any{account: ambitHere}), verbs: creates, needs: []authority{asManual},
	},
	"ApplyNewManual": {
		reason: "server-side apply of what is not there creates it",
		do:     apply(fresh, map[string]any{manualField: true}), verbs: applies, needs: []authority{asManual},
	},
	"UpdateMembersManual": {
		reason: "members decide where the account's rights are used",
		do:     update(manual, members), verbs: updates, needs: []authority{asManual},
	},
	"MergePatchMembersManual": {
		reason: "the account is used, also where the patch does not say why",
		do:     patch(manual, types.MergePatchType, `{"spec":{"namespaceMembers":["kube-system"]}}`),
		verbs:  patches, needs: []authority{asManual},
	},
	"ManualFromNowOn": {
		reason: "what was written with Ambit's rights must not be left to an account that cannot take it back",
		do:     patch(own, types.MergePatchType, `{"spec":{"manualManagement":true}}`),
		verbs:  patches, needs: []authority{asAmbit, asManual},
	},
	"ManualNoMore": {
		reason: "without manualManagement, the scope would be written with Ambit's own rights",
		do:     patch(manual, types.MergePatchType, `{"spec":{"manualManagement":false}}`),
		verbs:  patches, needs: []authority{asAmbit},
	},
	"UpdateManualAway": {
		reason: "a field left out is false",
		do: update(manual, func(scope *unstructured.Unstructured) error {
			unstructured.RemoveNestedField(scope.Object, "spec", manualField)

			return nil
		}),
		verbs: updates, needs: []authority{asAmbit},
	},
	"ApplyManualAway": {
		reason: "a field that its only field manager leaves out is removed; no word of the request says so",
		do:     applyAs(tool, manual, map[string]any{"namespaceMembers": []any{"team-a"}}),
		verbs:  patches, needs: []authority{asAmbit},
	},
	"ManualSpecAway": {
		reason: "with the spec goes manualManagement",
		do:     patch(manual, types.MergePatchType, `{"spec":null}`), verbs: patches, needs: []authority{asAmbit},
	},
	"NameAnAccountOfManual": {
		reason: "one account gives way to another; the one that counts is the one that will write from now on",
		do:     patch(manual, types.MergePatchType, `{"spec":{"serviceAccountName":"writer"}}`),
		verbs:  patches, needs: []authority{asWriter},
	},
	"ManualAwayNamingAccount": {
		reason: "the scope goes from one account to another, and at no time to none",
		do:     patch(manual, types.MergePatchType, `{"spec":{"manualManagement":null,"serviceAccountName":"writer"}}`),
		verbs:  patches, needs: []authority{asWriter},
	},
	"AccountAwayTurningManual": {
		reason: "the scope goes from one account to another, and at no time to none",
		do:     patch(delegated, types.MergePatchType, `{"spec":{"manualManagement":true,"serviceAccountName":null}}`),
		verbs:  patches, needs: []authority{asManual},
	},
	"ManualNamingAccount": {
		reason: "the account that is named goes on writing; the spec changes all the same",
		do:     patch(delegated, types.MergePatchType, `{"spec":{"manualManagement":true}}`),
		verbs:  patches, needs: []authority{asWriter},
	},
	"LabelManual": {
		reason: "metadata does not change what a scope does",
		do:     patch(manual, types.MergePatchType, `{"metadata":{"labels":{"team":"a"}}}`), verbs: patches,
	},
	"ReleaseManual": {
		reason: "Ambit holds and releases every scope by its finalizer",
		do:     patch(manual, types.MergePatchType, `{"metadata":{"finalizers":null}}`), verbs: patches, needs: []authority{toRelease},
	},
	"DeleteManual": {
		reason: "the end of a scope only takes rights away, and RBAC says who may",
		do:     remove(manual), verbs: deletes,
	},

	"OlderCreate": {
		reason: "a scope of the older group is written by Ambit itself", group: olderGroup,
		do: create(fresh, map[string]any{"namespaceMembers": []any{"team-a"}}), verbs: creates, needs: []authority{asAmbit},
	},
	"OlderCreateNamingAccount": {
		reason: "the older group drops a field that it does not have, and then nothing is named", group: olderGroup,
		do: create(fresh, map[string]any{account: writer}), verbs: creates, needs: []authority{asAmbit},
	},
	"OlderCreateManual": {
		reason: "manualManagement means the same in both groups", group: olderGroup,
		do: create(fresh, map[string]any{manualField: true}), verbs: creates, needs: []authority{asManual},
	},
	"OlderUpdateMembers": {
		reason: "members decide where Ambit's own rights are used", group: olderGroup,
		do: update(own, members), verbs: updates, needs: []authority{asAmbit},
	},
	"OlderUpdateMembersManual": {
		reason: "members decide where the account's rights are used", group: olderGroup,
		do: update(manual, members), verbs: updates, needs: []authority{asManual},
	},
	"OlderManualFromNowOn": {
		reason: "what was written with Ambit's rights must not be left to an account that cannot take it back", group: olderGroup,
		do:    patch(own, types.MergePatchType, `{"spec":{"manualManagement":true}}`),
		verbs: patches, needs: []authority{asAmbit, asManual},
	},
	"OlderManualNoMore": {
		reason: "without manualManagement, the scope would be written with Ambit's own rights", group: olderGroup,
		do:    patch(manual, types.MergePatchType, `{"spec":{"manualManagement":null}}`),
		verbs: patches, needs: []authority{asAmbit},
	},
	"OlderApplyManualAway": {
		reason: "a field that its only field manager leaves out is removed", group: olderGroup,
		do:    applyAs(tool, manual, map[string]any{"namespaceMembers": []any{"team-a"}}),
		verbs: patches, needs: []authority{asAmbit},
	},
	"OlderFinalizer": {
		reason: "Ambit holds and releases every scope by its finalizer", group: olderGroup,
		do: update(own, finalizer), verbs: updates,
	},
	"OlderDelete": {
		reason: "the end of a scope only takes rights away, and RBAC says who may", group: olderGroup,
		do: remove(manual), verbs: deletes,
	},
}
