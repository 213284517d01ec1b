package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestNamespaceScopeAccepted(t *testing.T) {
	client := scopeClient(t)

	for name, tc := range map[string]struct {
		reason string
		object string
	}{
		"NoSpec": {
			reason: "every field has a default, so leaving out all of them is complete",
			object: `{}`,
		},
		"EmptySpec": {
			reason: "the same, with the key written",
			object: `spec: {}`,
		},
		"Everything": {
			reason: "the fields of IBM's CRD and Ambit's own work together",
			object: `
spec:
  namespaceMembers: [cp4i, default]
  namespaceSelector: {matchLabels: {tier: gold}}
  serviceAccountMembers: [my-operator, my.operator]
  configmapName: my.list-1
  restartLabels: {example.com/intent: projected, other: ""}
  manualManagement: true
  csvInjector: {enable: true}
  workloadInjector: {enable: false}
  license: {accept: true, license: L-ABCD-EF, use: production, key: abc}
  allowSubsetProjection: true
  serviceAccountName: scope-writer`,
		},
		"Duplicates": {
			reason: "a member listed twice counts once; resources written for IBM's operator have them",
			object: `spec: {namespaceMembers: [a, b, a], serviceAccountMembers: [x, x]}`,
		},
		"ShortestAndLongestNames": {
			reason: "a namespace name has 1 to 63 characters",
			object: fmt.Sprintf(`spec: {namespaceMembers: [a, "0", %s]}`, strings.Repeat("n", 63)),
		},
		"SystemNamespaceByName": {
			reason: "only selection by label leaves system namespaces out",
			object: `spec: {namespaceMembers: [kube-system, openshift-operators]}`,
		},
		"FiveThousandMembers": {
			reason: "a large cluster fits into one scope",
			object: membersObject(5000),
		},
		"EmptyMembers": {
			reason: "the scope's own namespace is a member anyway",
			object: `spec: {namespaceMembers: []}`,
		},
		"EmptyConfigmapName": {
			reason: "IBM's operator takes it for the default",
			object: `spec: {configmapName: ""}`,
		},
		"EmptyRestartLabels": {
			reason: "empty means the default; refusing it would break resources that say so",
			object: `spec: {restartLabels: {}}`,
		},
		"LongestLabels": {
			reason: "a label's prefix has up to 253 characters, its name and its value up to 63",
			object: fmt.Sprintf(`spec: {restartLabels: {"%s/%s": "%s"}}`, strings.Repeat("p", 253), strings.Repeat("k", 63),
				strings.Repeat("v", 63)),
		},
		"NoMembersField": {
			reason: "a null is a field left out, as everywhere in Kubernetes",
			object: `spec: {namespaceMembers: null, configmapName: null, restartLabels: null, csvInjector: null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := dryRun(t, client, "Strict", tc.object); err != nil {
				t.Errorf("%s\nrefused: %v", tc.reason, err)
			}
		})
	}
}

func TestNamespaceScopeRefused(t *testing.T) {
	client := scopeClient(t)

	for name, tc := range map[string]struct {
		reason string
		object string
		field  string
	}{
		"MemberUpperCase": {
			reason: "no namespace has such a name",
			object: `spec: {namespaceMembers: [cp4i, CP4I]}`,
			field:  "spec.namespaceMembers[1]",
		},
		"MemberWithSlash": {
			reason: "it would end up in a URL path",
			object: `spec: {namespaceMembers: [team/a]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"MemberWildcard": {
			reason: "all namespaces is never meant by accident",
			object: `spec: {namespaceMembers: ["*"]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"MemberEmpty": {
			reason: "an empty entry of a watch list means all namespaces to most operators",
			object: `spec: {namespaceMembers: [""]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"MemberWithComma": {
			reason: "the watch list is separated by commas",
			object: `spec: {namespaceMembers: ["a,b"]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"MemberWithNewline": {
			reason: "the pattern holds for the whole name, not for its first line",
			object: `spec: {namespaceMembers: ["a\nb"]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"MemberWithDot": {
			reason: "a namespace name is one DNS label",
			object: `spec: {namespaceMembers: [a.b]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"MemberEndsWithHyphen": {
			reason: "no namespace has such a name",
			object: `spec: {namespaceMembers: [a-]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"MemberTooLong": {
			reason: "a namespace name has at most 63 characters",
			object: fmt.Sprintf(`spec: {namespaceMembers: [%s]}`, strings.Repeat("n", 64)),
			field:  "spec.namespaceMembers[0]",
		},
		"MemberNumber": {
			reason: "a name is a string; 0 without quotes is a number",
			object: `spec: {namespaceMembers: [0]}`,
			field:  "spec.namespaceMembers[0]",
		},
		"TooManyMembers": {
			reason: "an object with more would not fit into etcd",
			object: membersObject(20001),
			field:  "spec.namespaceMembers",
		},
		"AccountOfOtherNamespace": {
			reason: "only accounts of the scope's own namespace are projected",
			object: `spec: {serviceAccountMembers: [ns/my-operator]}`,
			field:  "spec.serviceAccountMembers[0]",
		},
		"AccountEmpty": {
			reason: "no account has such a name",
			object: `spec: {serviceAccountMembers: [""]}`,
			field:  "spec.serviceAccountMembers[0]",
		},
		"ConfigmapNameImpossible": {
			reason: "no ConfigMap has such a name",
			object: `spec: {configmapName: My_Map}`,
			field:  "spec.configmapName",
		},
		"ConfigmapNameTooLong": {
			reason: "a ConfigMap's name has at most 253 characters",
			object: fmt.Sprintf(`spec: {configmapName: %s}`, strings.Repeat("c", 254)),
			field:  "spec.configmapName",
		},
		"ConfigmapOfKubernetes": {
			reason: "Kubernetes rewrites kube-root-ca.crt in every namespace; two writers would fight for ever",
			object: `spec: {configmapName: kube-root-ca.crt}`,
			field:  "spec.configmapName",
		},
		"ConfigmapOfOpenShift": {
			reason: "so does OpenShift with openshift-service-ca.crt",
			object: `spec: {configmapName: openshift-service-ca.crt}`,
			field:  "spec.configmapName",
		},
		"LabelKeyWithSpaces": {
			reason: "no pod can carry it",
			object: `spec: {restartLabels: {"not a label": x}}`,
			field:  "spec.restartLabels",
		},
		"LabelKeyEmpty": {
			reason: "no pod can carry it",
			object: `spec: {restartLabels: {"": x}}`,
			field:  "spec.restartLabels",
		},
		"LabelKeyPrefixEmpty": {
			reason: "no pod can carry it",
			object: `spec: {restartLabels: {"/intent": x}}`,
			field:  "spec.restartLabels",
		},
		"LabelKeyTwoPrefixes": {
			reason: "no pod can carry it",
			object: `spec: {restartLabels: {"a/b/c": x}}`,
			field:  "spec.restartLabels",
		},
		"LabelKeyPrefixUpperCase": {
			reason: "the prefix is a DNS name",
			object: `spec: {restartLabels: {"Example.com/intent": x}}`,
			field:  "spec.restartLabels",
		},
		"LabelKeyTooLong": {
			reason: "the name in a label's key has at most 63 characters",
			object: fmt.Sprintf(`spec: {restartLabels: {%s: x}}`, strings.Repeat("k", 64)),
			field:  "spec.restartLabels",
		},
		"LabelKeyPrefixTooLong": {
			reason: "a label's prefix has at most 253 characters",
			object: fmt.Sprintf(`spec: {restartLabels: {%s/k: x}}`, strings.Repeat("p", 254)),
			field:  "spec.restartLabels",
		},
		"LabelValueHyphen": {
			reason: "a label's value begins with a letter or a digit",
			object: `spec: {restartLabels: {intent: "-"}}`,
			field:  "spec.restartLabels",
		},
		"LabelValueWithSpaces": {
			reason: "no pod can carry it",
			object: `spec: {restartLabels: {intent: "to be projected"}}`,
			field:  "spec.restartLabels",
		},
		"LabelValueTooLong": {
			reason: "a label's value has at most 63 characters",
			object: fmt.Sprintf(`spec: {restartLabels: {intent: %s}}`, strings.Repeat("v", 64)),
			field:  "spec.restartLabels.intent",
		},
		"LabelValueBoolean": {
			reason: "true without quotes is no string; Kubernetes refuses it in labels, too",
			object: `spec: {restartLabels: {intent: true}}`,
			field:  "spec.restartLabels.intent",
		},
		"SelectorText": {
			reason: "a selector is an object in both of its forms",
			object: `spec: {namespaceSelector: "tier=gold"}`,
			field:  "spec.namespaceSelector",
		},
		"SelectorList": {
			reason: "a selector is an object in both of its forms",
			object: `spec: {namespaceSelector: [tier]}`,
			field:  "spec.namespaceSelector",
		},
		"DelegateOfOtherNamespace": {
			reason: "a delegate of another namespace would lend its rights to whoever writes the scope",
			object: `spec: {serviceAccountName: other/scope-writer}`,
			field:  "spec.serviceAccountName",
		},
		"DelegateEmpty": {
			reason: "an empty identity is a refusal, never Ambit itself",
			object: `spec: {serviceAccountName: ""}`,
			field:  "spec.serviceAccountName",
		},
		"FlagText": {
			reason: `"false" in quotes must not mean true`,
			object: `spec: {manualManagement: "false"}`,
			field:  "spec.manualManagement",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dryRun(t, client, "Strict", tc.object)
			if err == nil {
				t.Fatalf("%s\nbut it was accepted", tc.reason)
			}

			if fields := refusedFields(t, err); !slices.Contains(fields, tc.field) {
				t.Errorf("%s\nrefused because of %q, want %q: %v", tc.reason, fields, tc.field, err)
			}
		})
	}
}

func TestNamespaceScopeUnknownFields(t *testing.T) {
	client := scopeClient(t)

	const object = `spec: {namespaceMembers: [a], namespaceMember: [b], license: {accepted: true}}`

	if _, err := dryRun(t, client, "Strict", object); !apierrors.IsBadRequest(err) {
		t.Errorf("kubectl asks for strict validation, so that a misspelled field is an error; got: %v", err)
	}

	raw, err := client.Post().Namespace("default").Resource(scopes).
		Param("dryRun", "All").
		Param("fieldValidation", "Ignore").
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(scopeJSON(t, object)).
		DoRaw(t.Context())
	if err != nil {
		t.Fatalf("without strict validation, fields of a later version are dropped and not an error; got: %v", err)
	}

	for _, unknown := range []string{`"namespaceMember":`, `"accepted":`} {
		if strings.Contains(string(raw), unknown) {
			t.Errorf("the unknown field %s must not be stored, as it would take effect after an upgrade: %s", unknown, raw)
		}
	}
}

// membersObject returns a scope with n different members.
func membersObject(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("member-%05d", i)
	}

	return fmt.Sprintf(`spec: {namespaceMembers: [%s]}`, strings.Join(members, ","))
}
