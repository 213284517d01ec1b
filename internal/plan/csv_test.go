package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestSelectorsOfCSVs: a deployment whose selector would not match its pods with the label is left alone, whichever way the
// selector says so. The API server would take no such Deployment, so the operator would get no update any more.
func TestSelectorsOfCSVs(t *testing.T) {
	t.Parallel()

	const key, projected = "intent", "projected"

	about := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: operator, Values: values},
		}}
	}

	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		pods     labels.Set
		says     string
	}{
		"nothing": {nil, nil, ""},
		"a label": {
			&metav1.LabelSelector{MatchLabels: labels.Set{key: "a"}}, labels.Set{key: "a"}, "its selector asks for intent=a",
		},
		"values":      {about(metav1.LabelSelectorOpIn, "a", "b"), labels.Set{key: "a"}, "does not match pods with intent=projected"},
		"a value":     {about(metav1.LabelSelectorOpNotIn, projected), nil, "does not match pods with intent=projected"},
		"none":        {about(metav1.LabelSelectorOpDoesNotExist), nil, "does not match pods with intent=projected"},
		"any":         {about(metav1.LabelSelectorOpExists), labels.Set{key: "a"}, ""},
		"it is one":   {about(metav1.LabelSelectorOpIn, "a", projected), labels.Set{key: "a"}, ""},
		"never":       {about(metav1.LabelSelectorOpIn, "a"), nil, ""},
		"unreadable":  {about("Sometimes"), nil, "its selector cannot be read"},
		"other label": {&metav1.LabelSelector{MatchLabels: labels.Set{"app": "a"}}, labels.Set{"app": "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			scopes, f := limitedTo("")
			scopes[0].Labels = labels.Set{key: projected}
			f.OperatorNamespace.CSVs[0].Deployments = []facts.CSVDeployment{{
				Name: "d", Selector: tc.selector, Template: facts.Template{Labels: tc.pods, Account: "op"},
				PodSpec: facts.PodSpec{Containers: []facts.Container{{Name: "a"}}},
			}}

			p := plan.New(scopes, f)
			problems := strings.Join(p.Scopes[0].CSVs.Problems, "; ")
			injected := false

			for i := range p.Injections {
				injected = injected || p.Injections[i].Workload.Kind == plan.CSVKind
			}

			if tc.says == "" && problems != "" || !strings.Contains(problems, tc.says) || injected != (tc.says == "") {
				t.Errorf("injected: %t, problems: %q, want %q", injected, problems, tc.says)
			}
		})
	}
}

// TestPackagesOfCSVs: OLM says by a label of which package a CSV is, cut as OLM cuts it; the name of one that somebody made by
// hand begins with that of its package.
func TestPackagesOfCSVs(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("p", 58)
	longer := long + "pppp"

	for reason, tc := range map[string]struct {
		csv  facts.CSV
		want bool
	}{
		"by its label":              {facts.CSV{Name: "any", ManagedOperators: "etcd", Components: []string{"x", "etcd.ops"}}, true},
		"of another by its label":   {facts.CSV{Name: "etcd.v1", ManagedOperators: "etcd", Components: []string{"etcd.other"}}, false},
		"by its name":               {facts.CSV{Name: "etcd.v1", ManagedOperators: "etcd"}, true},
		"by its whole name":         {facts.CSV{Name: "etcd", ManagedOperators: "etcd"}, true},
		"of another by its name":    {facts.CSV{Name: "etcdoperator.v1", ManagedOperators: "etcd"}, false},
		"one of several":            {facts.CSV{Name: "etcd.v1", ManagedOperators: " other , etcd,"}, true},
		"of none":                   {facts.CSV{Name: "etcd.v1"}, false},
		"of one without a name":     {facts.CSV{Name: ".v1", ManagedOperators: " ,"}, false},
		"by a long label":           {facts.CSV{Name: "any", ManagedOperators: long, Components: []string{long + ".ops"}}, true},
		"by one that is cut, a dot": {facts.CSV{Name: "any", ManagedOperators: longer, Components: []string{longer}}, true},
		"by one that ends in none":  {facts.CSV{Name: "any", ManagedOperators: longer, Components: []string{longer + "."}}, false},
	} {
		scopes, f := limitedTo("")
		tc.csv.Deployments = []facts.CSVDeployment{{Name: "d", Template: facts.Template{Account: "op"}}}
		f.OperatorNamespace.CSVs = []facts.CSV{tc.csv}

		if got := plan.New(scopes, f).Scopes[0].CSVs; (len(got.Found) > 0) != tc.want {
			t.Errorf("%s: found are %v of %v", reason, got.Found, got.Packages)
		}
	}
}

// TestCSVsThatAreLeftAlone: nothing is injected into Ambit itself, into what cannot be read, or, by a scope that anybody may
// write, what chooses pods or is in the way of something.
func TestCSVsThatAreLeftAlone(t *testing.T) {
	t.Parallel()

	const key, projected = "intent", "projected"

	for reason, tc := range map[string]struct {
		change   func(*scope.Scope, *facts.Facts, *facts.CSV)
		injected bool
		says     string
	}{
		"an operator":  {func(*scope.Scope, *facts.Facts, *facts.CSV) {}, true, ""},
		"Ambit itself": {func(_ *scope.Scope, f *facts.Facts, _ *facts.CSV) { f.AmbitAccount = "op" }, false, "op"},
		"deployments that are not": {
			func(_ *scope.Scope, _ *facts.Facts, c *facts.CSV) { c.Problem = "no list" }, false, "ClusterServiceVersion csv: no list",
		},
		"by a confined scope, the default label": {
			func(s *scope.Scope, _ *facts.Facts, _ *facts.CSV) {
				s.Confined, s.Labels = true, labels.Set{key: projected}
			}, true, "",
		},
		"by a confined scope, another label": {
			func(s *scope.Scope, _ *facts.Facts, _ *facts.CSV) {
				s.Confined, s.Labels = true, labels.Set{"app": "web"}
			}, false,
			"its pod template has to have the label app=web",
		},
		"by a confined scope, another value of the default label": {
			func(s *scope.Scope, _ *facts.Facts, _ *facts.CSV) { s.Confined, s.Labels = true, labels.Set{key: "x"} }, false,
			"its pod template has to have the label intent=x",
		},
		"by a confined scope, a label that is there": {
			func(s *scope.Scope, _ *facts.Facts, c *facts.CSV) {
				s.Confined, s.Labels = true, labels.Set{"app": "web"}
				c.Deployments[0].Template.Labels = labels.Set{"app": "web"}
			}, true, "",
		},
		"by a confined scope, a label that is there with another value": {
			func(s *scope.Scope, _ *facts.Facts, c *facts.CSV) {
				s.Confined, s.Labels = true, labels.Set{key: projected}
				c.Deployments[0].Template.Labels = labels.Set{key: "mine"}
			}, false, "its pod template has to have the label intent=projected",
		},
		"by a confined scope, a variable that is there": {
			func(s *scope.Scope, _ *facts.Facts, c *facts.CSV) {
				s.Confined = true
				c.Deployments[0].PodSpec.Containers[0].Env = []corev1.EnvVar{{Name: "WATCH_NAMESPACE", Value: "mine"}}
			}, false, "WATCH_NAMESPACE is set already, to a literal value; remove it there",
		},
		"by a confined scope, what it injected for another list": {
			func(s *scope.Scope, _ *facts.Facts, c *facts.CSV) {
				s.Confined = true
				c.Deployments[0].PodSpec.Containers[0].Env = readsListOf("former")
				c.Replaced = `{"d":{"containers":{"a":{"variable":"WATCH_NAMESPACE","configMap":"former"}}}}`
			}, true, "",
		},
		"by a confined scope, somebody else's list instead of what it injected": {
			func(s *scope.Scope, _ *facts.Facts, c *facts.CSV) {
				s.Confined = true
				c.Deployments[0].PodSpec.Containers[0].Env = readsListOf("mine")
				c.Replaced = `{"d":{"containers":{"a":{"variable":"WATCH_NAMESPACE","configMap":"former"}}}}`
			}, false, "WATCH_NAMESPACE is set already, to key namespaces of ConfigMap mine; remove it there",
		},
	} {
		scopes, f := limitedTo("")
		csv := &f.OperatorNamespace.CSVs[0]
		csv.Deployments = []facts.CSVDeployment{{
			Name: "d", Template: facts.Template{Account: "op"}, PodSpec: facts.PodSpec{Containers: []facts.Container{{Name: "a"}}},
		}}
		tc.change(&scopes[0], f, csv)

		p := plan.New(scopes, f)
		problems := strings.Join(p.Scopes[0].CSVs.Problems, "; ")

		if (len(p.Injections) > 0) != tc.injected || !strings.Contains(problems, tc.says) || (problems == "") != (tc.says == "") {
			t.Errorf("%s: %d injections, problems %q", reason, len(p.Injections), problems)
		}
	}
}

// TestConfinedScopesLimitNoWebhooks: whose webhooks an annotation asks to limit is known where no scope can.
func TestConfinedScopesLimitNoWebhooks(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct{ confined, asked, covered, want bool }{
		"it can be":      {false, true, true, false},
		"it cannot be":   {true, true, true, true},
		"nobody asks":    {true, false, true, false},
		"of another one": {true, true, false, false},
	} {
		scopes, f := limitedTo("")
		scopes[0].Confined = tc.confined
		csv := &f.OperatorNamespace.CSVs[0]

		csv.ManagedWebhooks = tc.asked
		if !tc.covered {
			csv.ManagedOperators = ""
		}

		if got := plan.New(scopes, f).Scopes[0].CSVs.Unlimited; (len(got) > 0) != tc.want {
			t.Errorf("%s: unlimited are %q", reason, got)
		}
	}
}

func readsListOf(configMap string) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Key: scope.ListKey,
	}}}}
}

// TestCSVsAreRestored: what was injected into a CSV is taken back once no scope covers it, for a scope that injects or did.
func TestCSVsAreRestored(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		change func(*scope.Scope, *facts.CSV)
		want   string
	}{
		"it is covered":          {func(*scope.Scope, *facts.CSV) {}, "patch 0"},
		"its package is not":     {func(_ *scope.Scope, c *facts.CSV) { c.ManagedOperators = "" }, "restore 0"},
		"the injector is off":    {func(s *scope.Scope, _ *facts.CSV) { s.InjectCSVs, s.Injected = false, true }, "restore 0"},
		"nobody says that it is": {func(s *scope.Scope, _ *facts.CSV) { s.InjectCSVs = false }, "restore -1"},
		"nothing is remembered":  {func(s *scope.Scope, c *facts.CSV) { s.InjectCSVs, c.Replaced = false, "" }, ""},
		"it cannot be read":      {func(s *scope.Scope, c *facts.CSV) { s.InjectCSVs, c.Problem = false, "no list" }, ""},
	} {
		scopes, f := limitedTo("")
		csv := &f.OperatorNamespace.CSVs[0]
		csv.Replaced, csv.Annotated, csv.Version = `{"d":{"labels":{"intent":{"is":"projected"}}}}`, true, 7
		csv.Deployments = []facts.CSVDeployment{{
			Name: "d", Template: facts.Template{Account: "op", Labels: labels.Set{"intent": "projected"}},
			PodSpec: facts.PodSpec{Containers: []facts.Container{{Name: "a"}}},
		}}
		tc.change(&scopes[0], csv)

		got := ""
		for _, in := range plan.New(scopes, f).Injections {
			if got += fmt.Sprint(in.Action, " ", in.Scope); in.Version != 7 || in.Workload.Name != "csv" || len(in.Patch) == 0 {
				t.Errorf("%s: %+v", reason, in)
			}
		}

		if got != tc.want {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}

// TestManyPackages: each of hundreds of packages is found among hundreds of ClusterServiceVersions, by a label or by a name, and
// of those that a label does not tell apart, not each in all of these.
func TestManyPackages(t *testing.T) {
	t.Parallel()

	const many = 400

	for name, csv := range map[string]func(pkg string) facts.CSV{
		"by label":        func(pkg string) facts.CSV { return facts.CSV{Name: "csv-" + pkg, Components: []string{pkg + ".ops"}} },
		"by name":         func(pkg string) facts.CSV { return facts.CSV{Name: pkg + ".v1.2.3"} },
		"by its own name": func(pkg string) facts.CSV { return facts.CSV{Name: pkg} },
	} {
		scopes, f := limitedTo("")

		var names []string

		f.OperatorNamespace.CSVs = nil

		for i := range many {
			names = append(names, fmt.Sprintf("p%03d", i))
			of := csv(names[i])
			of.Deployments = []facts.CSVDeployment{{Name: "d"}}
			f.OperatorNamespace.CSVs = append(f.OperatorNamespace.CSVs, of)
		}

		f.OperatorNamespace.CSVs[0].ManagedOperators = strings.Join(names, ",")

		if found := plan.New(scopes, f).Scopes[0].CSVs.Found; !slices.Equal(found, names) {
			t.Errorf("%s: %d of %d packages are found", name, len(found), many)
		}
	}

	// OLM's label has no room for what tells these apart.
	scopes, f := limitedTo("")
	csvs := &f.OperatorNamespace.CSVs
	long := strings.Repeat("p", 63)
	*csvs = nil

	var names []string

	for i := range many {
		names = append(names, fmt.Sprintf("%s-%03d", long, i))
		*csvs = append(*csvs, facts.CSV{
			Name: fmt.Sprintf("csv-%03d", i), Components: []string{long}, Deployments: []facts.CSVDeployment{{Name: "d"}},
		})
	}

	(*csvs)[0].ManagedOperators = strings.Join(names, ",")

	p, all := plan.New(scopes, f), 0
	for _, of := range p.Scopes[0].CSVs.ByPackage {
		all += len(of)
	}

	if all < many || all > many*many/10 {
		t.Errorf("%d ClusterServiceVersions are found %d times", many, all)
	}
}
