package reconcile_test

import (
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// life is what happens to an operator from its beginning to its end.
type life struct {
	begin func(t *testing.T) *world
	// calls are the reconcilers that take part.
	calls []caller
	// steps are what happens, one after the other. What follows from each is done before the next.
	steps []func(w *world)
	// remembers says that in the end there is what is left of what was there before.
	remembers bool
}

// caller calls a reconciler once, for the namespace ops.
type caller struct {
	reconciler func(w *world) changes.Reconciler
	key        func(w *world) scope.Key
	catchUp    func(w *world)
}

func byScopes() caller {
	return caller{
		reconciler: func(w *world) changes.Reconciler { return w.scopes },
		key:        func(w *world) scope.Key { return scope.NamespaceScopes.In(w.ns(ops)) },
		catchUp: func(w *world) {
			w.catchUp(w.scopes.Client, w.ns(ops), scopeKinds()...)

			// What is left without scopes is read without a watch, and a call that failed may not have come to ask for one.
			if !w.tripped && len(w.versions(w.client, &operatorv1.NamespaceScopeList{}, w.ns(ops))) > 0 {
				w.knowsCSVs()
			}
		},
	}
}

func byGroups() caller {
	return caller{
		reconciler: func(w *world) changes.Reconciler { return w.groups },
		key:        func(w *world) scope.Key { return scope.Installs.In(w.ns(ops)) },
		catchUp:    func(w *world) { w.catchUpGroup(ops) },
	}
}

func byTemplates() caller {
	return caller{
		reconciler: func(w *world) changes.Reconciler { return w.templates },
		key:        func(*world) scope.Key { return scope.TemplatesKey() },
		catchUp: func(w *world) {
			w.catchUp(w.templates.Client, "", &operatorsv1alpha1.ScopeTemplateList{}, &operatorsv1alpha1.ScopeInstanceList{})
		},
	}
}

func byCatalogs() caller {
	return caller{
		reconciler: func(w *world) changes.Reconciler { return w.catalogs },
		key:        func(w *world) scope.Key { return scope.Catalogs.In(w.ns(ops)) },
		catchUp: func(w *world) {
			w.catchUpCatalogs()

			if w.looked {
				w.knowsCatalog(w.ns(ops), "catalog")
			}

			w.looked = true
		},
	}
}

// knowsCSVs waits until the store knows the ClusterServiceVersions of the namespace ops as they are, where it is about those.
func (w *world) knowsCSVs() {
	w.Helper()

	live := w.csvs()

	if err := until(w.Context(), func() bool {
		_, listed := w.scopes.Store.Facts(scope.NamespaceScopes.In(w.ns(ops)), time.Now())
		for i := range live {
			known := w.scopes.Store.Version(&live[i])
			listed = listed && (known == 0 || known >= scope.ParseVersion(live[i].GetResourceVersion()))
		}

		return listed
	}); err != nil {
		w.Fatal("the store does not know the ClusterServiceVersions")
	}
}

// asksFor is a step that changes what the scope asks for, and ends one that deletes it.
func asksFor(spec string) func(*world) { return func(w *world) { w.respec(spec) } }

func ends(w *world) { w.removeScope("scope") }

// lives are those of each kind that Ambit serves.
func lives() map[string]life {
	return map[string]life{
		"a scope whose members change": {
			begin: func(t *testing.T) *world {
				t.Helper()

				w := begin(t)
				w.common()
				w.grant(ops, "more", "op", "list pods")
				w.reads(nil)

				return w
			},
			calls: []caller{byScopes()},
			steps: []func(*world){
				func(w *world) { w.scope(`{"namespaceMembers":["a>"],"restartLabels":{"name":"reader"}}`) },
				asksFor(`{"namespaceMembers":["a>","b>"],"restartLabels":{"name":"reader"}}`),
				func(w *world) { w.Remove(testbed.Role(w.ns(ops), "more")) },
				asksFor(`{"namespaceMembers":["b>"],"configmapName":"another"}`),
				func(w *world) {
					w.scopeCalled("younger", `{"namespaceMembers":["a>"],"configmapName":"another"}`)
				},
				ends,
				func(w *world) { w.removeScope("younger") },
			},
		},
		"a scope that injects": {
			begin: func(t *testing.T) *world {
				t.Helper()

				w, _ := replaceable(t, "cluster")
				w.deployment("free")

				return w
			},
			calls: []caller{byScopes()},
			steps: []func(*world){
				func(w *world) { w.scope(`{"namespaceMembers":["a>"],"workloadInjector":{"mountPath":"/etc/scope"}}`) },
				asksFor(replacing), asksFor(mountedX), asksFor(inert), asksFor(replacing), ends,
			},
		},
		"a scope that injects into versions": {
			begin: func(t *testing.T) *world {
				t.Helper()

				w := begin(t)
				w.namespaces("ops", "a", "b")
				w.watch(w.ns(ops))
				w.packaged("operators=op webhooks=op", "mine", nil)
				w.webhooks("op.v1", nil)

				return w
			},
			calls: []caller{byScopes()},
			steps: []func(*world){
				func(w *world) { w.scope(injecting) },
				asksFor(`{"namespaceMembers":["a>","b>"],"csvInjector":{"enable":true}}`), asksFor(inert), asksFor(injecting), ends,
			},
		},
		"a scope of a delegate": {
			remembers: true,
			begin: func(t *testing.T) *world {
				t.Helper()

				w := begin(t)
				w.delegated()

				return w
			},
			calls: []caller{byScopes()},
			steps: []func(*world){
				asksFor(`{"namespaceMembers":["b>"],"serviceAccountName":"delegate"}`),
				asksFor(`{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate"}`),
				func(w *world) { w.withdraws("a") },
				func(w *world) { w.Remove(testbed.Role(w.ns(ops), "more")) },
				func(w *world) { w.lets("a") },
				ends,
			},
		},
		"an operator of a group": {
			remembers: true,
			begin: func(t *testing.T) *world {
				t.Helper()

				w := grouped(t)
				w.definition("things", "Thing")

				return w
			},
			calls: []caller{byGroups()},
			steps: []func(*world){
				func(w *world) { w.group("group", inA) },
				func(w *world) { w.csv("*", asking("v.example.com"), w.owning("things", "Thing")) },
				(*world).rollsOut,
				func(w *world) { w.regroup(`{"targetNamespaces":["b>","ops>"]}`) },
				(*world).rollsOut,
				func(w *world) {
					w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions = nil })
				},
				(*world).rollsOut,
				func(w *world) { w.Remove(w.operatorCSV(podTemplate("op"))) },
				func(w *world) { w.Remove(w.groupNamed(ops, "group")) },
			},
		},
		"an operator of a group with an account": {
			remembers: true,
			begin: func(t *testing.T) *world {
				t.Helper()

				w := groupedWith(t, "delegated")
				w.Make(testbed.Account(w.ns(ops), "scoped"))
				w.gives("everything-ops", w.everythingIn(ops))
				w.gives("everything-a", w.everythingIn("a"))

				return w
			},
			calls: []caller{byGroups()},
			steps: []func(*world){
				func(w *world) { w.group("group", inAByAccount) },
				func(w *world) { w.csv("*") },
				(*world).rollsOut,
				func(w *world) { w.regroup(`{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`) },
				(*world).rollsOut,
				func(w *world) { w.Remove(w.groupNamed(ops, "group")) },
				func(w *world) { w.Remove(w.operatorCSV(podTemplate("op"))) },
			},
		},
		"a template and an instance": {
			begin: func(t *testing.T) *world { t.Helper(); return templated(t) },
			calls: []caller{byTemplates()},
			steps: []func(*world){
				func(w *world) {
					w.template(`{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]},` +
						`{"generateName":"s-","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}]}]}`)
				},
				func(w *world) { w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>"]}`) },
				func(w *world) { w.reinstance(`{"scopeTemplateName":"t>","namespaces":["b>","c>"]}`) },
				func(w *world) {
					w.retemplate(`{"clusterRoles":[{"generateName":"r-","rules":[` +
						`{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]}]}]}`)
				},
				func(w *world) { w.reinstance(`{"scopeTemplateName":"t>"}`) },
			},
		},
		"a subscription": {
			remembers: true,
			begin: func(t *testing.T) *world {
				t.Helper()

				w := subscribable(t)
				w.Make(w.configMap("catalog", kettles(kettle1)))
				w.catalogCalled("source")

				return w
			},
			calls: []caller{byCatalogs(), byGroups()},
			steps: []func(*world){
				func(w *world) { w.subscribe() },
				func(w *world) {
					cm := w.configMap("catalog", nil)
					w.Change(cm, func() { cm.Data = kettles(kettle1, kettle2) })
				},
				func(w *world) {
					w.Remove(&olmv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"}})
				},
			},
		},
	}
}

// rollsOut has the Deployment be what it is asked to be, if there is one.
func (w *world) rollsOut() {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op"}, d); err == nil {
		w.rollOut()
	}
}
