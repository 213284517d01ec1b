package plan

import (
	"cmp"
	"slices"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// Data is what "ambit plan" prints for programs.
type Data struct {
	// Files are the objects of the files; LeftOut those that do not matter to Ambit.
	Files   []File   `json:"files"`
	LeftOut []string `json:"leftOut,omitempty"`
	// Scopes are all that were planned, also those for which nothing would change.
	Scopes     []Scope        `json:"scopes"`
	Objects    []Object       `json:"objects"`
	WatchLists []predict.List `json:"watchLists"`
	Injections []Injection    `json:"injections,omitempty"`
	Restarts   []Restart      `json:"restarts"`
	// Installs is what the statuses of OLM's kinds would say.
	Installs []Install `json:"installs,omitempty"`
	// Grants are the Roles and RoleBindings that would give what is missing.
	Grants []map[string]any `json:"grants,omitempty"`
	// Refused says whether something would be refused.
	Refused bool `json:"refused"`
	// Unknown is what could not be played forward: nothing in the plan is about it.
	Unknown []Unknown `json:"unknown,omitempty"`
	// NotRead is what could not be read, and so could not be taken into account.
	NotRead []string `json:"notRead,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// File is an object of the files.
type File struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Result    string `json:"result"`
	// Fate is the same, by the name that it had in the first releases. It goes with the next release.
	Fate    string `json:"fate"`
	Refused string `json:"refused,omitempty"`
}

// Scope is what would become of a scope.
type Scope struct {
	Scope string `json:"scope"`
	Group string `json:"group"`
	// Served are the members that would have everything; Failed those that would not.
	Served []string               `json:"served"`
	Joins  []string               `json:"joins,omitempty"`
	Leaves []string               `json:"leaves,omitempty"`
	Failed []predict.FailedMember `json:"failed,omitempty"`
	// Finishes are those that leave and keep their permissions for a while, because something waits there.
	Finishes []Finish `json:"finishes,omitempty"`
	// Unread are members of which nothing could be read. The plan assumes that they stay as they are.
	Unread []string `json:"unread,omitempty"`
	// Says are remarks on the scope itself.
	Says []string `json:"says,omitempty"`
}

// Finish is a namespace in which something waits for a finalizer of an operator.
type Finish struct {
	Namespace string `json:"namespace"`
	Message   string `json:"message"`
}

// Object is one write to one object.
type Object struct {
	Action    plan.Action      `json:"action"`
	Purpose   predict.Purpose  `json:"purpose"`
	Kind      string           `json:"kind"`
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name"`
	Source    string           `json:"source,omitempty"`
	Scope     string           `json:"scope,omitempty"`
	Refused   *predict.Refusal `json:"refused,omitempty"`
}

// Injection is a write into an operator.
type Injection struct {
	Namespace string            `json:"namespace"`
	Target    string            `json:"target"`
	Action    plan.InjectAction `json:"action"`
	Scope     string            `json:"scope,omitempty"`
	// Webhook says that the write limits a webhook configuration to Members, or removes that limit where there are none.
	Webhook bool     `json:"webhook,omitempty"`
	Members []string `json:"members,omitempty"`
	// Rolls says that the write restarts the pods.
	Rolls   bool             `json:"rolls,omitempty"`
	Refused *predict.Refusal `json:"refused,omitempty"`
}

// Restart is an operator that would restart.
type Restart struct {
	Namespace string           `json:"namespace"`
	Reader    string           `json:"reader"`
	Evicts    []string         `json:"evicts,omitempty"`
	WatchList string           `json:"watchList"`
	Reason    string           `json:"reason"`
	Refused   *predict.Refusal `json:"refused,omitempty"`
}

// Data is a plan as programs get it.
func (o *Options) Data(v *reading.Cluster, r *Planned) (*Data, error) {
	d := &Data{
		Files: []File{}, Scopes: []Scope{}, Objects: []Object{}, WatchLists: []predict.List{}, Restarts: []Restart{},
		Refused: r.refused(), Unknown: r.unknown(), NotRead: v.NotRead(), Notes: v.Notes,
	}

	for _, p := range r.proposals {
		d.Files = append(d.Files, File{
			Group: p.GroupVersionKind().Group, Kind: p.GetKind(), Namespace: p.GetNamespace(), Name: p.GetName(),
			Result: p.result, Fate: p.result, Refused: p.refused,
		})
	}

	for _, p := range r.left {
		d.LeftOut = append(d.LeftOut, output.Title(p, p.GetKind()))
	}

	for _, f := range r.Predictions {
		d.add(v, f, r.authorizer)
	}

	d.Installs = r.Installs.statuses

	for _, c := range r.Installs.Changes {
		d.Objects = append(d.Objects, r.Installs.object(&c))
	}

	grants := r.Installs.grants
	for _, g := range r.authorizer.Grants(r.Predictions) {
		grants = append(grants, g.Role(), g.RoleBinding())
	}

	for _, obj := range grants {
		content, err := output.Content(obj)
		if err != nil {
			return nil, err
		}

		d.Grants = append(d.Grants, content)
	}

	return d, nil
}

func (d *Data) add(v *reading.Cluster, f *predict.Prediction, authorizer *snapshot.Authorizer) {
	for i := range f.Scopes {
		s := scopeData(v, &f.Scopes[i])
		if why := authorizer.Nobody(f.Scopes[i].Scope.Owner); why != "" {
			s.Says = append([]string{"nobody would serve it: " + why}, s.Says...)
		}

		d.Scopes = append(d.Scopes, s)
	}

	for i := range f.Changes {
		c := &f.Changes[i]
		one := Object{
			Action: c.Action, Purpose: c.Purpose, Kind: string(c.Key.Kind), Namespace: c.Namespace, Name: c.ShownName(),
			Scope: c.Owner.String(), Refused: c.Refusal,
		}

		if c.Owner.Name == "" {
			one.Scope = ""
		}

		if c.Copy != nil {
			one.Source = c.Copy.Source
		}

		d.Objects = append(d.Objects, one)
	}

	d.WatchLists = append(d.WatchLists, f.Lists...)

	for i := range f.Injections {
		in := &f.Injections[i]
		one := Injection{
			Namespace: f.Key.Namespace, Target: in.Target, Action: in.Action, Rolls: in.Rolls,
			Webhook: in.Webhook, Members: in.Members, Refused: in.Refusal,
		}

		if in.Owner.Name != "" {
			one.Scope = in.Owner.String()
		}

		d.Injections = append(d.Injections, one)
	}

	for i := range f.Restarts {
		r := &f.Restarts[i]
		d.Restarts = append(d.Restarts, Restart{f.Key.Namespace, r.Reader(), names(r.Evict), r.List, r.Why(), r.Refusal})
	}
}

func names(pods []facts.PodRef) []string {
	return collect.Map(pods, func(pod facts.PodRef) string { return pod.Name })
}

func failedIn(failed []predict.FailedMember) []string {
	return collect.Map(failed, func(m predict.FailedMember) string { return m.Namespace })
}

func scopeData(v *reading.Cluster, f *predict.ScopePrediction) Scope {
	out := Scope{
		Scope: f.Scope.Owner.String(), Group: f.Scope.Owner.Group, Served: f.Served, Failed: f.Failed, Unread: f.Unread,
		Says: reading.Remarks(v, f),
	}

	if out.Served == nil {
		out.Served = []string{}
	}

	// A namespace that fails is still a member.
	before, stay := servedBefore(v, f), slices.Concat(f.Served, f.Unread, failedIn(f.Failed))
	out.Joins, out.Leaves = without(f.Served, append(slices.Clone(before), "")), without(before, stay)

	addWaiting(v, f, &out)

	return out
}

// servedBefore returns the members that the status of the scope names. If the status does not name all of them, and for an
// instance, it returns the namespaces that hold something of the scope.
func servedBefore(v *reading.Cluster, f *predict.ScopePrediction) []string {
	for i := range v.Scopes {
		status := reading.StatusOf(v.Scopes[i].Object)
		if status != nil && status.ValidatedMembersTotal == 0 && v.Scopes[i].Owner == f.Scope.Owner {
			return status.ValidatedMembers
		}
	}

	var out []string

	for namespace, held := range v.FactsOf(f.Scope.Key).Projected {
		for _, live := range held {
			if namespace != "" && live.Owner == f.Scope.Owner.String() {
				out = append(out, namespace)

				break
			}
		}
	}

	slices.SortFunc(out, cmp.Compare[string])

	return out
}
