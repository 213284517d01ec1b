package facts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWhomAnAuthorizationServes: one for a scope serves no other, and one for none in particular serves each.
func TestWhomAnAuthorizationServes(t *testing.T) {
	t.Parallel()

	owner := scope.Owner{Group: "g", Kind: "K", Namespace: "ops", Name: "s"}

	for of, want := range map[facts.Authorization]bool{
		{}: true, {ScopeGroup: "g", ScopeName: "s"}: true, {ScopeGroup: "g", ScopeName: "t"}: false,
		{ScopeGroup: "h", ScopeName: "s"}: false, {ScopeName: "s"}: false,
	} {
		if got := of.IsFor(owner); got != want {
			t.Errorf("%+v is for %v: %t", of, owner, got)
		}
	}
}

// TestOwners: owners are kept in one order, so that they can be compared, and somebody who adds many takes no more room.
func TestOwners(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		uids []string
		want []string
	}{
		"none":               {nil, nil},
		"some":               {[]string{"b", "a"}, []string{"a", "b"}},
		"as many as may be":  {[]string{strings.Repeat("a", 1023), ""}, []string{"", strings.Repeat("a", 1023)}},
		"one character more": {[]string{strings.Repeat("a", 1024), ""}, []string{"many"}},
	} {
		p := facts.Projected{Content: &facts.Content{Owners: facts.OwnersOf(tc.uids)}}
		if got := p.OwnerUIDs(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q", reason, got)
		}
	}
}

// TestRecordsAreEqual: what many facts share is compared by what it says, and everything else as it is.
func TestRecordsAreEqual(t *testing.T) {
	t.Parallel()

	of := func(content *facts.Content, change func(*facts.Projected)) facts.Projected {
		p := facts.Projected{Content: content, RoleName: "r", Version: 1}
		if change != nil {
			change(&p)
		}

		return p
	}
	content := &facts.Content{Owner: "o", Rules: "[]"}
	one := of(content, nil)

	for reason, tc := range map[string]struct {
		other facts.Projected
		want  bool
	}{
		"itself":              {one, true},
		"another of it":       {of(&facts.Content{Owner: "o", Rules: "[]"}, nil), true},
		"other rules":         {of(&facts.Content{Owner: "o", Rules: "[{}]"}, nil), false},
		"a later version":     {of(content, func(p *facts.Projected) { p.Version = 2 }), false},
		"of another role":     {of(content, func(p *facts.Projected) { p.RoleName = "s" }), false},
		"one that is held":    {of(content, func(p *facts.Projected) { p.Held = true }), false},
		"one that goes":       {of(content, func(p *facts.Projected) { p.Terminating = true }), false},
		"one without content": {of(nil, nil), false},
	} {
		if one.Equal(&tc.other) != tc.want || tc.other.Equal(&one) != tc.want {
			t.Errorf("%s: equal is not %t both ways", reason, tc.want)
		}
	}

	empty := of(nil, nil)
	if !empty.Equal(new(of(nil, nil))) {
		t.Error("two without content are the same")
	}

	bound := facts.Projected{Content: &facts.Content{RoleGroup: "g", RoleKind: "K"}, RoleName: "n"}
	if got := bound.RoleRef(); got != (rbacv1.RoleRef{APIGroup: "g", Kind: "K", Name: "n"}) {
		t.Errorf("it refers to %v", got)
	}
}

// TestWhenAListChanged: what says that the list is younger than Ambit's last write is not Ambit's.
func TestWhenAListChanged(t *testing.T) {
	t.Parallel()

	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }

	for reason, tc := range map[string]struct {
		since, applied, want time.Time
	}{
		"as it says":             {at(10), at(20), at(10)},
		"with the last write":    {at(20), at(20), at(20)},
		"after it":               {at(30), at(20), at(20)},
		"when nothing says so":   {time.Time{}, at(20), at(20)},
		"when Ambit never wrote": {at(10), time.Time{}, time.Time{}},
	} {
		c := facts.ConfigMap{Since: tc.since, Applied: tc.applied}
		if got := c.ChangedAt(); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", reason, got, tc.want)
		}
	}
}

// TestWhoseAListIs: Ambit has written to it, or what is left of it cannot be taken back.
func TestWhoseAListIs(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		c          facts.ConfigMap
		ours, left bool
	}{
		"nobody's":                          {facts.ConfigMap{}, false, false},
		"annotated":                         {facts.ConfigMap{ListHash: "a"}, true, false},
		"recorded":                          {facts.ConfigMap{Applied: time.Unix(1, 0)}, true, false},
		"deleted, without a list":           {facts.ConfigMap{Terminating: true}, false, true},
		"deleted, with a list":              {facts.ConfigMap{Terminating: true, HasList: true}, false, false},
		"deleted, and nobody can change it": {facts.ConfigMap{Terminating: true, HasList: true, Immutable: true}, false, true},
		"immutable, and not deleted":        {facts.ConfigMap{HasList: true, Immutable: true}, false, false},
	} {
		if tc.c.Ours() != tc.ours || tc.c.IsLeft() != tc.left {
			t.Errorf("%s: ours %t, left %t", reason, tc.c.Ours(), tc.c.IsLeft())
		}
	}
}

// TestLimitOf: of several requirements with the same values, Ambit's is the last, and without its annotation none is.
func TestLimitOf(t *testing.T) {
	t.Parallel()

	const name = "kubernetes.io/metadata.name"

	of := func(requirements ...facts.Requirement) []facts.Webhook {
		return []facts.Webhook{{}, {Selected: true, Requirements: requirements}}
	}
	limit := facts.LimitTo("a,b")
	ours := facts.Requirement{Key: limit.Key, Operator: string(limit.Operator), Values: strings.Join(limit.Values, ",")}

	for reason, tc := range map[string]struct {
		replaced string
		webhooks []facts.Webhook
		want     int
	}{
		"the only one":      {"a,b", of(ours), 0},
		"the last of two":   {"a,b", of(ours, facts.Requirement{Key: "k", Operator: "Exists"}, ours), 2},
		"not remembered":    {"", of(ours, facts.Requirement{Key: name, Operator: "In"}), -1},
		"with other values": {"a,b", of(facts.Requirement{Key: name, Operator: "In", Values: "a"}), -1},
		"the other way":     {"a,b", of(facts.Requirement{Key: name, Operator: "NotIn", Values: "a,b"}), -1},
		"by another label":  {"a,b", of(facts.Requirement{Key: "k", Operator: "In", Values: "a,b"}), -1},
		"none":              {"a,b", of(), -1},
	} {
		c := facts.WebhookConfiguration{Replaced: tc.replaced, Webhooks: tc.webhooks}
		if got := c.LimitOf(1); got != tc.want {
			t.Errorf("%s: at %d, want %d", reason, got, tc.want)
		}
	}
}

// TestServiceShape: Services that lead to the same have one shape, whatever the cluster filled in, and others have another.
func TestServiceShape(t *testing.T) {
	t.Parallel()

	spec := func(change func(*corev1.ServiceSpec)) *corev1.ServiceSpec {
		s := &corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"a": "b"},
			Ports: []corev1.ServicePort{{Name: "p", Port: 443, TargetPort: intstr.FromInt32(8443), Protocol: corev1.ProtocolTCP}},
		}
		change(s)

		return s
	}
	same := facts.ServiceShape(spec(func(*corev1.ServiceSpec) {}))

	for reason, change := range map[string]func(*corev1.ServiceSpec){
		"an address":   func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.1" },
		"a node port":  func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30_000 },
		"the affinity": func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityNone },
	} {
		if facts.ServiceShape(spec(change)) != same {
			t.Errorf("%s is the cluster's", reason)
		}
	}

	for reason, change := range map[string]func(*corev1.ServiceSpec){
		"the type":            func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort },
		"whom it selects":     func(s *corev1.ServiceSpec) { s.Selector["a"] = "c" },
		"a name of a port":    func(s *corev1.ServiceSpec) { s.Ports[0].Name = "q" },
		"a port":              func(s *corev1.ServiceSpec) { s.Ports[0].Port = 444 },
		"where it leads":      func(s *corev1.ServiceSpec) { s.Ports[0].TargetPort = intstr.FromString("https") },
		"a protocol":          func(s *corev1.ServiceSpec) { s.Ports[0].Protocol = corev1.ProtocolUDP },
		"one port more":       func(s *corev1.ServiceSpec) { s.Ports = append(s.Ports, s.Ports[0]) },
		"an external address": func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"10.0.0.1"} },
		"an external name":    func(s *corev1.ServiceSpec) { s.ExternalName = "example.com" },
	} {
		if facts.ServiceShape(spec(change)) == same {
			t.Errorf("%s makes no difference", reason)
		}
	}

	if facts.Shape(func() {}) != "" || facts.Shape(nil) == "" {
		t.Error("only what cannot be written down has no shape")
	}
}

// TestSmallFacts holds what callers read from single fields.
func TestSmallFacts(t *testing.T) {
	t.Parallel()

	left := facts.LeftOut{Deployments: map[string]struct{}{"a": {}}}
	more := facts.LeftOut{More: true}
	second := time.Unix(1, 0)

	for reason, tc := range map[string]struct{ got, want bool }{
		"one that is left out may be there":            {left.MayHave("a"), true},
		"another is not":                               {left.MayHave("b"), false},
		"of more than are named, each may be":          {more.MayHave("b"), true},
		"something waits":                              {(&facts.Waiting{Count: 1}).Any(), true},
		"something may wait that was not seen":         {(&facts.Waiting{Unseen: "x"}).Any(), true},
		"what is kept does not wait":                   {(&facts.Waiting{Kept: []string{"a"}, KeptCount: 1}).Any(), false},
		"within a second nothing tells what was first": {(&facts.Birth{Created: second}).InDoubt(second), true},
		"unless Ambit saw it":                          {(&facts.Birth{Created: second, BornAt: 1}).InDoubt(second), false},
		"in another second the time tells":             {(&facts.Birth{Created: second}).InDoubt(second.Add(time.Second)), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t", reason, tc.got)
		}
	}

	for want, pod := range map[string]corev1.PodSpec{
		"default": {}, "a": {ServiceAccountName: "a", DeprecatedServiceAccount: "b"}, "b": {DeprecatedServiceAccount: "b"},
	} {
		if got := facts.AccountOf(&pod); got != want {
			t.Errorf("pods run as %s, want %s", got, want)
		}
	}

	if got := facts.LegacyMark("list", "ops"); got != "list-ops" {
		t.Errorf("IBM's operator writes list-ops, and not %s", got)
	}

	if got := facts.LegacyMark(strings.Repeat("l", 60), "ops"); got != strings.Repeat("l", 60)+"-op" {
		t.Errorf("a label has 63 characters, and not those of %s", got)
	}

	deployment := &appsv1.Deployment{}

	for replicas, want := range map[*int32]bool{nil: false, new(int32(0)): true, new(int32(1)): false} {
		deployment.Spec.Replicas = replicas
		if _, idle := facts.Deployment.Type().Pods(scope.Object(deployment)); idle != want {
			t.Errorf("a Deployment of %v replicas is idle: %t", replicas, idle)
		}
	}

	if facts.WorkloadKind("Pod").Type() != nil || facts.WorkloadKind("Pod").Restarts() != facts.NoRestart ||
		facts.Deployment.Restarts() != facts.ByTemplate {
		t.Error("what is no workload is restarted in no way")
	}
}
