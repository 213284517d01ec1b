package narrow

import (
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// asks says what a version asks for beyond another, in the words of the report.
func asks(t *testing.T, before, after string) []string {
	t.Helper()

	more, _, err := Check(stream(t, before), stream(t, after), &Options{Kinds: reach.NewKinds()})
	if err != nil {
		t.Fatal(err)
	}

	got := []string{}

	for i := range more {
		isAccount := more[i].Whose == "" && more[i].BoundTo == ""
		if len(more[i].Rules) != 0 == (more[i].Unknown || len(more[i].Says) > 0) || more[i].New && !isAccount {
			t.Errorf("it is %+v", more[i])
		}

		got = append(got, more[i].String())
	}

	return got
}

// TestCheckOfDeclarations holds that a new version asks for more where it has OLM or Ambit give more: by a ClusterServiceVersion,
// a ScopeTemplate, and what says where these, and Roles beside a NamespaceScope, hold. Each case replaces one text of a version.
func TestCheckOfDeclarations(t *testing.T) {
	t.Parallel()

	const (
		csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: op.v1, namespace: ops}
spec:
  apiservicedefinitions: {owned: [{group: a.example.com, version: v1, kind: A, name: a, deploymentName: op}]}
  webhookdefinitions:
  - {type: MutatingAdmissionWebhook, generateName: a.example.com, deploymentName: op, sideEffects: None,
     objectSelector: {matchLabels: {a: b}}, admissionReviewVersions: [v1],
     rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  install:
    strategy: deployment
    spec:
      deployments: []
      permissions: [{serviceAccountName: op, rules: [{apiGroups: [''], resources: [services], verbs: [get]}]}]
      clusterPermissions: [{serviceAccountName: op, rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]}]
`
		group = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: g, namespace: ops}\n" +
			"spec: {targetNamespaces: [a], serviceAccountName: limited}\n"
		template = `apiVersion: operators.coreos.com/v1alpha1
kind: ScopeTemplate
metadata: {name: t}
spec:
  clusterRoles:
  - generateName: t-
    rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
    subjects: [{kind: ServiceAccount, name: op, namespace: ops}]
---
`
		instance = "apiVersion: operators.coreos.com/v1alpha1\nkind: ScopeInstance\nmetadata: {name: i}\n" +
			"spec: {scopeTemplateName: t, namespaces: [a, b]}\n"
		scope = "apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s, namespace: ops}\n" +
			"spec: {namespaceMembers: [a], serviceAccountMembers: [op], serviceAccountName: limited}\n"
		legacy = "apiVersion: namespacescope.ibm.com/v1alpha1\nkind: NamespaceScope\nmetadata: {name: s, namespace: ops}\n" +
			"spec: {namespaceMembers: [a], projected-serviceaccounts: [op]}\n"
		hook = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w}\n" +
			"webhooks: [{name: a.example.com, clientConfig: {service: {namespace: ops, name: op}}, " +
			"rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE], scope: Namespaced}]}]\n"

		definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n" +
			"spec: {group: example.com, scope: Namespaced, names: {plural: widgets}, conversion: {strategy: Webhook, webhook: " +
			"{conversionReviewVersions: [v1], clientConfig: {service: {namespace: ops, name: op}}}}}\n"

		byHook = "the validating webhook of Service ops/op may do more where it is limited by " +
			`{"scope":"Namespaced"}, by ValidatingWebhookConfiguration w: `
		byCSV     = ", by ClusterServiceVersion ops/op.v1: "
		bySetting = ", by NamespaceScope ops/s: "
		served    = "whoever NamespaceScope ops/s serves may do more in its members" + bySetting
	)

	for name, tc := range map[string]struct {
		text, of, by string
		want         []string
	}{
		"as before, under another name": {csv, "op.v1", "op.v2", nil},
		"less":                          {csv, "resources: [nodes]", "resources: []", nil},
		"more in the whole cluster": {
			csv, "[nodes]", "[nodes, secrets]", []string{"ops/op may do more in the whole cluster" + byCSV + "get secrets"},
		},
		"more in the targets": {
			csv, "[services]", "[secrets]", []string{
				"ops/op may do more in namespace ops and in the targets of the OperatorGroup of namespace ops" + byCSV + "get secrets",
			},
		},
		"from the targets to the whole cluster": {
			csv, "[nodes]", "[services]", []string{"ops/op may do more in the whole cluster" + byCSV + "get services"},
		},
		"no account is named": {
			csv, "serviceAccountName: op, rules: [{apiGroups: [''], resources: [nodes]", "rules: [{apiGroups: [''], resources: [nodes]",
			[]string{"ops/default may do more in the whole cluster" + byCSV + "get nodes"},
		},
		"a webhook is asked about more": {
			csv, "[CREATE]", "[UPDATE]", []string{
				`the mutating webhook of Deployment ops/op may do more where it is limited by {"objectSelector":{"matchLabels":{"a":"b"}}}` +
					byCSV + "update pods",
			},
		},
		"a webhook is no longer limited": {
			csv, "objectSelector: {matchLabels: {a: b}}", "objectSelector: {}",
			[]string{"the mutating webhook of Deployment ops/op may do more in the whole cluster" + byCSV + "create pods"},
		},
		"another API is served": {
			csv, "group: a.example.com", "group: b.example.com",
			[]string{"the API server of Deployment ops/op may do more in the whole cluster" + byCSV + "serve b.example.com/*"},
		},
		"a version that nobody knows": {
			csv, "coreos.com/v1alpha1", "coreos.com/v2", []string{"somebody may do more in the whole cluster, by ClusterServiceVersion " +
				"ops/op.v1: nobody knows the rules of ClusterServiceVersion ops/op.v1, so it may give anything"},
		},
		"another target": {
			group, "[a]", "[a, b]",
			[]string{"the operators of OperatorGroup ops/g may do more in its targets, by OperatorGroup ops/g: namespaces: b"},
		},
		"all targets": {
			group, "targetNamespaces: [a], ", "",
			[]string{"the operators of OperatorGroup ops/g may do more in its targets, by OperatorGroup ops/g: namespaces: all"},
		},
		"no limit": {
			group, ", serviceAccountName: limited", "",
			[]string{"the operators of OperatorGroup ops/g may do more in its targets, by OperatorGroup ops/g: limited by: nobody"},
		},
		"more by a template": {
			template, "[pods]", "[secrets]",
			[]string{"ops/op may do more wherever a ScopeInstance binds it, by ScopeTemplate t: get secrets"},
		},
		"more by a template that is bound": {
			template + instance, "[pods]", "[secrets]",
			[]string{"ops/op may do more in the namespaces a, b, by ScopeInstance i and ScopeTemplate t: get secrets"},
		},
		"Oria's": {
			strings.ReplaceAll(template+instance, "coreos.com", "io.operator-framework"), "[pods]", "[secrets]",
			[]string{"ops/op may do more in the namespaces a, b, by ScopeInstance i and ScopeTemplate t: get secrets"},
		},
		"for another account": {
			template + instance, "namespace: ops}", "namespace: ops}, {kind: Group, name: all}",
			[]string{"all may do more in the namespaces a, b, by ScopeInstance i and ScopeTemplate t: get pods"},
		},
		"another namespace": {
			template + instance, "[a, b]", "[c, b]",
			[]string{"ops/op may do more in namespace c, by ScopeInstance i and ScopeTemplate t: get pods"},
		},
		"no namespace, which is all": {
			template + instance, "[a, b]", "[]",
			[]string{"ops/op may do more in the whole cluster, by ScopeInstance i and ScopeTemplate t: get pods"},
		},
		"no instance": {template + instance, instance, "", nil},
		"another namespace of a template elsewhere": {
			instance, "[a, b]", "[a, c]", []string{"whoever is named by ScopeTemplate t may do more in namespace c, by ScopeInstance i: " +
				"nobody knows the rules of ScopeTemplate t, so it may give anything"},
		},
		"another member":  {scope, "[a]", "[a, b]", []string{served + "namespaces: b"}},
		"another account": {scope, "[op]", "[op, other]", []string{served + "accounts: other"}},
		"members by labels": {
			scope, "namespaceMembers", "namespaceSelector: {team: a}, namespaceMembers",
			[]string{served + "namespaces with labels: team=a"},
		},
		"other workloads": {
			scope, "namespaceMembers", "restartLabels: {a: b}, namespaceMembers",
			[]string{served + "accounts of workloads with labels: a=b"},
		},
		"with the rights of Ambit": {scope, ", serviceAccountName: limited", "", []string{served + "written as: Ambit"}},
		"no member":                {scope, "[a]", "[]", nil},
		"all accounts":             {legacy, "[op]", "[]", []string{served + "accounts: all of its namespace"}},
		"a Role beside a scope": {
			scope + "---\n" + bound("ops", "cluster-admin"), "metadata: {name: of-cluster-admin", "metadata: {name: other", nil,
		},
		"a webhook is asked about more, by itself": {
			hook, "[deployments]", "[daemonsets]", []string{"the validating webhook of Service ops/op may do more where it is limited " +
				`by {"scope":"Namespaced"}, by ValidatingWebhookConfiguration w: create apps/daemonsets`},
		},
		"a webhook is asked about another version": {
			hook, "apiVersions: [v1]", "apiVersions: [v1, v2]", []string{byHook + "create apps/deployments"},
		},
		"a webhook is asked about all versions": {
			hook, "apiVersions: [v1]", "apiVersions: ['*']", []string{byHook + "create apps/deployments"},
		},
		"a webhook is asked about fewer versions": {
			strings.Replace(hook, "[v1]", "['*']", 1), "apiVersions: ['*']", "apiVersions: [v1]", nil,
		},
		"a webhook is asked about equivalent requests": {
			strings.Replace(hook, "rules", "matchPolicy: Exact, rules", 1), "Exact", "Equivalent",
			[]string{byHook + "create apps/deployments"},
		},
		"a webhook is asked about exact requests": {hook, "rules", "matchPolicy: Exact, rules", nil},
		"objects are converted elsewhere": {
			definition, "name: op}", "name: other}", []string{"the conversion webhook of Service ops/other may do more in the whole " +
				"cluster, by CustomResourceDefinition widgets.example.com: convert example.com/widgets"},
		},
		"objects are converted at a URL": {
			definition, "service: {namespace: ops, name: op}", "url: 'https://example.com'", []string{"the conversion webhook of " +
				"https://example.com may do more in the whole cluster, by CustomResourceDefinition widgets.example.com: convert " +
				"example.com/widgets"},
		},
		"objects are no longer converted": {definition, "strategy: Webhook", "strategy: None", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if !strings.Contains(tc.text, tc.of) {
				t.Fatal("the case replaces nothing")
			}

			if got := asks(t, tc.text, strings.Replace(tc.text, tc.of, tc.by, 1)+"---\nkind: ConfigMap\n"); !slices.Equal(got, tc.want) {
				t.Errorf("asked for is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestCheckOfWhatScopesCopy holds that what a RoleBinding beside a NamespaceScope gives counts for its members, too, unless it is
// kept from scopes.
func TestCheckOfWhatScopesCopy(t *testing.T) {
	t.Parallel()

	const (
		scope = "---\napiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s, namespace: ops}\n" +
			"spec: {namespaceMembers: [a], serviceAccountMembers: [op]}\n"
		members = "in the members of the NamespaceScopes of namespace ops"
		by      = ", by ClusterRole system:auth-delegator: create authentication.k8s.io/tokenreviews; create authorization.k8s.io/" +
			"subjectaccessreviews"
	)

	copied := bound("ops", "system:auth-delegator")
	kept := strings.Replace(copied, "namespace: ops}", "namespace: ops, annotations: {ambit.dev/project: disabled}}", 1)

	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"new, beside a scope":    {scope, scope + copied, []string{"ops/op may do more in namespace ops and " + members + by}},
		"new, and kept":          {scope, scope + kept, []string{"ops/op may do more in namespace ops" + by}},
		"new, without a scope":   {"", copied, []string{"ops/op may do more in namespace ops" + by}},
		"kept no more":           {kept, copied, []string{"ops/op may do more " + members + by}},
		"kept from now on":       {copied, kept, []string{}},
		"as before, and a scope": {scope + copied, scope + copied, []string{}},
	} {
		if got := asks(t, tc.before, tc.after); !slices.Equal(got, tc.want) {
			t.Errorf("%s: asked for is\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}

// TestCheckOfWhatNobodyReads holds that a version asks for more, and for anything, where a kind that may give rights says
// something else than before, and nothing here knows what it gives.
func TestCheckOfWhatNobodyReads(t *testing.T) {
	t.Parallel()

	for text, is := range map[string]bool{
		"apiVersion: authorization.openshift.io/v1\nkind: ClusterRoleBinding\nroleRef: {name: cluster-admin}":             true,
		"apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nspec: {name: a}":                                  true,
		"apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nspec: {a: b}":                                   true,
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {a: b}":                                          true,
		"apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {a: b}":                                               true,
		"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nspec: {a: b}":                                                   false,
		"apiVersion: example.com/v1\nkind: NamespaceScope\nspec: {a: b}":                                                  true,
		"apiVersion: example.com/v1\nkind: Grant\nspec: {rules: [{verbs: [get]}]}":                                        true,
		"apiVersion: example.com/v1\nkind: Grant\nspec: {manifests: [{roleRef: {name: cluster-admin}}]}":                  true,
		"apiVersion: example.com/v1\nkind: Widget\nspec: {a: b}":                                                          false,
		"apiVersion: v1\nkind: ConfigMap\ndata: {clusterServiceVersions: '[]'}":                                           true,
		"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nspec: {mutations: []}":               true,
		"apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingAdmissionPolicyBinding\nspec: {policyName: a}":   true,
		"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nspec: {validations: []}":           false,
		"apiVersion: v1\nkind: ConfigMap\ndata: {verb: get}":                                                              false,
		"apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nspec: {rules: [{resourceRules: [{verbs: [a]}]}]}": false,
	} {
		text += "\nmetadata: {name: x}\n"
		kind := stream(t, text).docs[0].String()
		want := []string{}

		if is {
			want = append(want, "somebody may do more in the whole cluster, by "+kind+": nobody knows the rules of "+kind+
				", so it may give anything")
		}

		if got := asks(t, "", text); !slices.Equal(got, want) {
			t.Errorf("of\n%s\nasked for is %q", text, got)
		}

		if got := asks(t, text, strings.Replace(text, "{name: x}", "{name: x, labels: {a: b}}", 1)); len(got) > 0 {
			t.Errorf("of\n%s\nas it was, asked for is %q", text, got)
		}
	}
}

// TestHostileDeclarations holds that a check refuses declarations which are too large to compare, or of which two readers may
// read different things.
func TestHostileDeclarations(t *testing.T) {
	t.Parallel()

	const head = "apiVersion: operators.coreos.com/v1alpha1\nkind: ScopeTemplate\nmetadata: {name: x}\n"

	many := "[" + strings.Repeat("a,", 1000) + "]"

	for reason, text := range map[string]string{
		"a key twice": head + "spec: {clusterRoles: [], clusterRoles: []}",
		"a merge":     head + "x: &x {clusterRoles: []}\nspec: {<<: *x}",
		"a conversion twice": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a, scope: Cluster, " +
			"names: {plural: b}, conversion: {}, conversion: {}}",
		"a strategy twice": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a, scope: Cluster, " +
			"names: {plural: b}, conversion: {strategy: None, strategy: Webhook, webhook: {clientConfig: {url: 'https://c'}}}}",
		"a strategy by a merge": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a, " +
			"scope: Cluster, names: {plural: b}, conversion: {<<: {strategy: Webhook, webhook: {clientConfig: {url: 'https://c'}}}}}",
		"names twice": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a, scope: Cluster, " +
			"names: {plural: b, plural: c}}",
		"a spec twice": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a, scope: Cluster, " +
			"names: {plural: b}}\nspec: {}",
		"an encoded key":              "apiVersion: example.com/v1\nkind: Grant\nspec: {of: [{? !!binary dmVyYnM= : [get]}]}",
		"an encoded key of what runs": "apiVersion: example.com/v1\nkind: Runner\nspec: {? !!binary c2VydmljZUFjY291bnROYW1l : a}",
		"a template twice":            head + "---\n" + head,
		"a key by alias":              "apiVersion: example.com/v1\nkind: Grant\nspec: {x: &k verbs, of: {*k : [get]}}",
		"no list":                     head + "spec: {clusterRoles: a}",
		"too many rights": head + "spec: {clusterRoles: [{subjects: [{kind: Group, name: a}], rules: [{apiGroups: " + many +
			", resources: " + many + ", verbs: [a]}]}]}",
	} {
		_, _, err := Check(stream(t, ""), stream(t, text), &Options{Kinds: reach.NewKinds()})
		if err == nil {
			t.Errorf("%s was taken", reason)
		} else if !strings.Contains(err.Error(), "file 0") {
			t.Errorf("%s: the file is not named: %v", reason, err)
		}
	}
}
