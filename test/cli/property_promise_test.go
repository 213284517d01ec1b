package cli_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// promise is what a plan says of a world.
type promise struct {
	data *cliplan.Data
	// actions are what is written, as described by key, with what is there then.
	actions map[string][]map[string]any
	// lists are the watch lists that change, by namespace and name; nil where the ConfigMap goes.
	lists map[string]*string
	// restarts are the readers that restart but for workloads whose pods are evicted, and evicted are the pods that go.
	restarts, evicted map[string]struct{}
	// hooks are the members that webhook configurations are limited to.
	hooks map[string][]string
	// statuses are those of OLM's kinds in the end.
	statuses []cliplan.Install
	// finishes says that a namespace stays until its operators have finished there.
	finishes bool
}

// plan asks what a move would do, as "ambit plan" does.
func (w *drawn) plan(m *move) *promise {
	w.Helper()

	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.CacheDir = &w.Cluster.Kubeconfig, nil

	options := &cliplan.Options{Files: []string{file(w.World, "move.yaml", m.text(w.T))}, Delete: m.delete}
	options.Cluster = flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS, c.WarningHandler = -1, rest.NoWarnings{}

		return c
	})
	options.Streams = output.Streams{Out: terminal.NewWriter(w.Output()), ErrOut: terminal.NewWriter(w.Output())}
	options.Namespace, options.AmbitNamespace, options.Output = "default", reading.DefaultAmbitNamespace, "json"

	v, planned, err := reading.Once(w.Context(), &options.Options,
		func(ctx context.Context, v *reading.Cluster) (*cliplan.Planned, error) {
			documents, err := files.Read(options.Files, false)
			if err != nil {
				return nil, err
			}

			return options.For(ctx, v, documents)
		})
	if err != nil {
		w.Fatalf("planning: %v\n%s\nall moves:\n%s", err, m.text(w.T), strings.Join(w.history, ""))
	}

	data, err := options.Data(v, planned)
	if err != nil {
		w.Fatal(err)
	}

	return w.promiseOf(data, planned)
}

func (w *drawn) promiseOf(d *cliplan.Data, planned *cliplan.Planned) *promise {
	w.Helper()

	p := &promise{
		data: d, actions: map[string][]map[string]any{}, lists: map[string]*string{}, restarts: map[string]struct{}{},
		evicted: map[string]struct{}{}, hooks: map[string][]string{},
	}

	for _, f := range planned.Predictions {
		w.addPrediction(p, f)
	}

	if planned.Installs != nil {
		w.addInstalls(p, planned.Installs)
	}

	p.settle()

	return p
}

// changed identifies the object that a prediction changes.
func changed(c *predict.Change) id {
	return id{rbacv1.GroupName, string(c.Key.Kind), c.Namespace, c.Key.Name}
}

// passingIn are the objects that come and go: nobody sees them who looks before and after.
func passingIn(f *predict.Prediction) map[id]struct{} {
	made, passing := map[id]struct{}{}, map[id]struct{}{}

	for i := range f.Changes {
		if c := &f.Changes[i]; c.Refusal == nil && c.Action == plan.Create && c.ShownName() != c.Key.Name {
			made[changed(c)] = struct{}{}
		}
	}

	for i := range f.Changes {
		c := &f.Changes[i]
		if _, is := made[changed(c)]; is && c.Refusal == nil && c.Action == plan.Delete {
			passing[changed(c)] = struct{}{}
		}
	}

	return passing
}

func (w *drawn) addPrediction(p *promise, f *predict.Prediction) {
	w.Helper()

	passing := passingIn(f)

	for i := range f.Changes {
		c := &f.Changes[i]
		_, passes := passing[changed(c)]
		if passes || c.Refusal != nil || !w.has(c.Namespace, c.Key.Name+c.Owner.String()+c.Namespace) {
			continue
		}

		var content map[string]any
		if c.Copy != nil {
			o := c.Object()
			o.RoleRef = c.ShownRoleRef()
			content = w.content(o.In(c.Namespace))
		}

		p.add(string(c.Action), string(c.Key.Kind), c.Namespace, c.ShownName(), content)
	}

	if !w.has(f.Key.Namespace, f.Key.Namespace) {
		return
	}

	for i := range f.Lists {
		if l := &f.Lists[i]; l.Refusal == nil {
			p.lists[f.Key.Namespace+"/"+l.Name] = listed(l.After, l.Exists)
		}
	}

	for i := range f.Injections {
		in := &f.Injections[i]
		if in.Refusal != nil {
			continue
		}

		kind, name, _ := strings.Cut(in.Target, " ")
		namespace := f.Key.Namespace

		if in.Webhook {
			namespace = ""
			p.hooks[name] = in.Members
		}

		p.add("update", kind, namespace, name, nil)
	}

	for i := range f.Restarts {
		r := &f.Restarts[i]
		if r.Refusal != nil {
			continue
		}

		// Where its pods are evicted, nothing is seen of that in a workload.
		if len(r.Evict) == 0 || r.Workload.Kind == "" {
			p.restarts[f.Key.Namespace+" "+r.Reader()] = struct{}{}
		}

		for _, pod := range r.Evict {
			p.evicted[f.Key.Namespace+"/"+pod.Name] = struct{}{}
		}
	}
}

func listed(list string, exists bool) *string {
	if !exists {
		return nil
	}

	return &list
}

func (w *drawn) addInstalls(p *promise, i *cliplan.Installs) {
	w.Helper()

	// What is printed of the changes comes last, in their order.
	printed := p.data.Objects[len(p.data.Objects)-len(i.Changes):]

	for n, c := range i.Changes {
		there := c.After
		if there == nil {
			there = c.Before
		}

		if w.has(c.Key.Namespace, fmt.Sprint(there.Object["metadata"])) {
			p.add(string(printed[n].Action), c.Key.Kind.Kind, c.Key.Namespace, printed[n].Name, contentOf(i.Shown(there).Object))
		}
	}

	for _, c := range i.After {
		if w.has(c.Key.Namespace, "") {
			p.statuses = append(p.statuses, cliplan.Status(c.After))
		}
	}
}

// has says whether something belongs to the world: what is in a namespace by that, and anything else by a text.
func (w *drawn) has(namespace, text string) bool {
	if _, ends := w.ending[namespace]; ends {
		return false
	}

	if namespace != "" {
		return slices.Contains(w.namespaces(), namespace)
	}

	return strings.Contains(text, w.tag)
}

func (w *drawn) content(obj client.Object) map[string]any {
	w.Helper()

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		w.Fatal(err)
	}

	u := &unstructured.Unstructured{Object: content}

	gvk, err := apiutil.GVKForObject(obj, w.Client.Scheme())
	if err != nil {
		w.Fatal(err)
	}

	u.SetGroupVersionKind(gvk)

	return contentOf(u.Object)
}

func key(action, kind, namespace, name string) string {
	return action + " " + kind + " " + namespace + "/" + name
}

func (p *promise) add(action, kind, namespace, name string, content map[string]any) {
	if action == "create" {
		name = star(name)
	}

	of := key(action, kind, namespace, name)
	p.actions[of] = append(p.actions[of], content)
}

// without leaves out what is in namespaces that end: whatever is there goes.
func (p *promise) without(namespaces map[string]struct{}) {
	ends := func(of, separator string) bool {
		namespace, _, _ := strings.Cut(of, separator)
		_, is := namespaces[namespace]

		return is
	}

	maps.DeleteFunc(p.actions, func(of string, _ []map[string]any) bool { return ends(strings.SplitN(of, " ", 3)[2], "/") })
	maps.DeleteFunc(p.lists, func(of string, _ *string) bool { return ends(of, "/") })
	maps.DeleteFunc(p.restarts, func(of string, _ struct{}) bool { return ends(of, " ") })
	maps.DeleteFunc(p.evicted, func(of string, _ struct{}) bool { return ends(of, "/") })

	p.statuses = slices.DeleteFunc(p.statuses, func(i cliplan.Install) bool { return ends(i.Namespace, "/") })
}

// settle makes one action of several for one object.
func (p *promise) settle() {
	for of, contents := range p.actions {
		action, rest, _ := strings.Cut(of, " ")

		switch action {
		case "update":
			if _, made := p.actions["create "+rest]; made {
				p.actions["create "+rest] = contents
				delete(p.actions, of)
			} else {
				p.actions[of] = contents[len(contents)-1:]
			}
		case "delete":
			delete(p.actions, "update "+rest)

			p.actions[of] = contents[:1]
		}
	}
}

// promises says whether there is anything that would happen.
func (p *promise) promises() bool {
	return len(p.actions)+len(p.lists)+len(p.restarts)+len(p.evicted) > 0
}

func (p *promise) refusesFiles() bool {
	return slices.ContainsFunc(p.data.Files, func(f cliplan.File) bool { return f.Refused != "" })
}

func (p *promise) refusesFile(of id) bool {
	return slices.ContainsFunc(p.data.Files, func(f cliplan.File) bool {
		return f.Refused != "" && f.Kind == of.kind && f.Namespace == of.namespace && f.Name == of.name
	})
}

// String says what is promised.
func (p *promise) String() string {
	var out strings.Builder

	for _, of := range slices.Sorted(maps.Keys(p.actions)) {
		fmt.Fprintf(&out, "\n  %s (%d)", of, len(p.actions[of]))
	}

	for of, list := range p.lists {
		fmt.Fprintf(&out, "\n  list %s: %s", of, shown(list))
	}

	fmt.Fprintf(&out, "\n  restarts %v, evicts %v", slices.Sorted(maps.Keys(p.restarts)), slices.Sorted(maps.Keys(p.evicted)))

	for i := range p.data.Objects {
		if o := &p.data.Objects[i]; o.Refused != nil {
			fmt.Fprintf(&out, "\n  refused: %s %s %s/%s: %s", o.Action, o.Kind, o.Namespace, o.Name, o.Refused.Message)
		}
	}

	for i := range p.data.WatchLists {
		if l := &p.data.WatchLists[i]; l.Refusal != nil {
			fmt.Fprintf(&out, "\n  refused: list %s/%s: %s", l.Namespace, l.Name, l.Refusal.Message)
		}
	}

	for i := range p.data.Scopes {
		s := &p.data.Scopes[i]
		fmt.Fprintf(&out, "\n  %s: served %v failed %v says %q", s.Scope, s.Served, s.Failed, s.Says)
	}

	return out.String()
}

func shown(list *string) string {
	if list == nil {
		return "(gone)"
	}

	return fmt.Sprintf("%q", *list)
}
