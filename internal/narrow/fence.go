package narrow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// Fence refuses an operator's writes outside of its members.
type Fence struct{ allow []string }

// What a fence may leave out.
const (
	FenceStatus        = "status"
	FenceEvents        = "events"
	FenceClusterScoped = "cluster-scoped"
)

// leftOut are the conditions of what a fence may leave out.
var leftOut = map[string]string{
	FenceStatus: `variables.where == '' && variables.sub == 'status'`, FenceEvents: fenceIsEvent,
	FenceClusterScoped: `variables.where == ''`,
}

// FenceWords are what a fence may leave out: all writes to cluster-scoped objects, events about them, and their status.
func FenceWords() []string { return slices.Sorted(maps.Keys(leftOut)) }

// NewFence makes a fence that leaves some things out.
func NewFence(allow []string) (*Fence, error) {
	for _, word := range allow {
		if leftOut[word] == "" {
			return nil, fmt.Errorf("a fence cannot leave out %q; give %s", word, strings.Join(FenceWords(), ", "))
		}
	}

	return &Fence{allow}, nil
}

// The variables that the conditions of a fence use. A namespace counts as being in itself.
const (
	// fenceNames leaves out what is no name: what has no namespace would count as being there.
	fenceNames = `'namespaces' in variables.data ? variables.data.namespaces.split(',').filter(name, name != '') : []`
	fenceData  = `has(params.data) ? params.data : {}`
	fenceWhere = `request.resource.group == '' && request.resource.resource == 'namespaces' ? ` +
		`(variables.name != '' || object == null ? variables.name : object.metadata.?name.orValue('')) : ` +
		`(has(request.namespace) ? request.namespace : '')`
	fenceName = `has(request.name) ? request.name : ''`
	fenceSub  = `has(request.subResource) ? request.subResource : ''`
	// fenceWhat is the resource as rules name it.
	fenceWhat = `request.resource.resource + (variables.sub == '' ? '' : '/' + variables.sub)`
	// fenceOwn is what the fence itself depends on: for whoever may write the list, or the scope that it is made from, it would be
	// no fence.
	fenceOwn = `has(request.namespace) && request.namespace == %[1]s && (` +
		`request.resource.group == '' && request.resource.resource == 'configmaps' && (variables.name == %[2]s || ` +
		`variables.name == '' && request.operation == 'DELETE') || request.resource.resource == 'namespacescopes')`
	fenceIsEvent = `variables.where == 'default' && request.operation in ['CREATE', 'UPDATE'] && ` +
		`request.resource.resource == 'events' && request.resource.group in ['', 'events.k8s.io'] && object != null && ` +
		`(has(object.involvedObject) ? object.involvedObject.?namespace.orValue('') == '' : ` +
		`object.?regarding.?namespace.orValue('') == '')`
)

// maxExpression is how long an expression may be for the API server (github.com/google/cel-go/parser, the default of
// ExpressionSizeCodePointLimit).
const maxExpression = 100_000

// fence writes the policy of a group, and its binding.
func (r *run) fence(g *group) error {
	users := collect.Map(g.served, func(s *served) string { return quoted(s.User()) })
	slices.Sort(users)

	name := r.wholeName(g, kindPolicyBinding, fencePrefix, (*group).isFence)
	r.otherFences(name, users)

	elsewhere := r.elsewhere(g)

	allowed := append(make([]string, 0, 1+len(r.Fence.allow)+len(elsewhere)), `variables.where in variables.names`)
	for _, word := range r.Fence.allow {
		allowed = append(allowed, "("+leftOut[word]+")")
	}

	allowed = append(allowed, elsewhere...)

	expression := strings.Join(allowed, " || ")
	if utf8.RuneCountInString(expression) > maxExpression {
		return fmt.Errorf("the fence of %s would have to let through more than an admission policy can say, because RoleBindings of "+
			"other namespaces give too much; leave these out, or leave out --fence", strings.Join(g.accountNames(), ", "))
	}

	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kindPolicy},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    new(admissionv1.Fail),
			ParamKind:        &admissionv1.ParamKind{APIVersion: "v1", Kind: kindConfigMap},
			MatchConstraints: everyWrite(),
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "account", Expression: "request.userInfo.username in [" + strings.Join(users, ", ") + "]",
			}},
			Variables: []admissionv1.Variable{
				{Name: "data", Expression: fenceData}, {Name: "names", Expression: fenceNames},
				{Name: "name", Expression: fenceName}, {Name: "where", Expression: fenceWhere}, {Name: "sub", Expression: fenceSub},
				{Name: "what", Expression: fenceWhat},
			},
			Validations: []admissionv1.Validation{
				{
					Expression: "!(" + fmt.Sprintf(fenceOwn, quoted(g.namespace), quoted(g.configMap())) + ")",
					Message:    "the fence of this account stands on this object, so the account may not write it",
					Reason:     new(metav1.StatusReasonForbidden),
				},
				{
					Expression: expression,
					MessageExpression: `"the fence of this account lets it write in the namespaces of ConfigMap ` +
						g.namespace + "/" + g.configMap() +
						` only, and not " + (variables.where == '' ? 'in the cluster' : 'in ' + variables.where)`,
					Reason: new(metav1.StatusReasonForbidden),
				},
			},
		},
	}

	if err := r.addList(g); err != nil {
		return err
	}

	if err := r.add(policy); err != nil {
		return err
	}

	return r.bindFence(g, name)
}

// fencePrefix begins the names of fences.
const fencePrefix = "ambit-fence-"

// otherFences tells of fences of the cluster that are about one of these users under another name: what was narrowed by an older
// Ambit, or when the operator's workload was called otherwise. A write has to pass them all.
func (r *run) otherFences(name string, users []string) {
	if r.Policies == nil {
		return
	}

	all, known := r.Policies()
	if !known {
		r.report.notef("admission policies of the cluster could not be read: a fence that these accounts had under another name " +
			"goes on refusing what it does not know")
	}

	for i := range all {
		p := &all[i]
		if p.Name == name || !strings.HasPrefix(p.Name, fencePrefix) || r.identities[identity(kindPolicy, "", p.Name)] != nil {
			continue
		}

		if slices.ContainsFunc(p.Spec.MatchConditions, func(c admissionv1.MatchCondition) bool {
			return slices.ContainsFunc(users, func(user string) bool { return strings.Contains(c.Expression, user) })
		}) {
			r.report.warnf("ValidatingAdmissionPolicy %s of the cluster fences the same account in, is not in the output, and goes on "+
				"refusing what it does not know. Once %s is applied: kubectl delete --ignore-not-found "+
				"validatingadmissionpolicybinding/%s validatingadmissionpolicy/%s", printable.Name(p.Name), printable.Name(name),
				printable.Word(p.Name), printable.Word(p.Name))
		}
	}
}

// isFence says whether the binding of a policy is that of a group: its parameter is the group's list.
func (g *group) isFence(d *Document) bool {
	param := at(d.body, "spec", "paramRef")

	return text(param, "namespace") == g.namespace && text(param, "name") == g.configMap()
}

// addList makes the list of a fence, which comes before the scope: Ambit deletes, with its last scope, a list that it made.
func (r *run) addList(g *group) error {
	// The API server looks for parameters before it asks whose request it is (k8s.io/apiserver/pkg/admission/plugin/policy/generic):
	// to deny where there are none would refuse everybody's writes, and then Ambit could not make the list. So the list is made
	// here, without names, which lets the account write nowhere; Ambit fills it, and leaves it there, because it did not make it.
	return r.add(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kindConfigMap},
		ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: g.configMap()},
	})
}

func (r *run) bindFence(g *group, name string) error {
	return r.add(&admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kindPolicyBinding},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			ParamRef: &admissionv1.ParamRef{
				Namespace: g.namespace, Name: g.configMap(), ParameterNotFoundAction: new(admissionv1.AllowAction),
			},
		},
	})
}

func everyWrite() *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{
				admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect,
			},
			Rule: admissionv1.Rule{
				APIGroups: []string{wildcard}, APIVersions: []string{wildcard}, Resources: []string{"*/*"},
				Scope: new(admissionv1.AllScopes),
			},
		},
	}}}
}

// elsewhere are the writes that RoleBindings of other namespaces give the accounts, such as leader election in kube-system.
func (r *run) elsewhere(g *group) []string {
	// An expression may be of some length only, and the same role may be bound in any number of namespaces.
	given := map[string][]string{}

	all, known := r.roleBindings()
	if !known {
		r.report.warnf("RoleBindings of the cluster could not be read: the fence refuses what those of other namespaces let an " +
			"account write, such as for leader election, unless they are in the input")
	}

	for _, b := range all {
		// The Role that is known everywhere writes nothing.
		if b.Namespace == g.namespace || !b.names(g.served) ||
			b.roleRef.Kind == kindRole && wellKnownRole(b.Namespace, b.roleRef.Name) != nil && r.docOf(b) == nil {
			continue
		}

		rules, unknown := r.rulesBound(b, r.Options)
		if len(unknown) > 0 {
			r.report.warnf("%s refers to %s %s, which is not in the input, and not known: the fence refuses the writes that it gives "+
				"in %s", b.doc, b.roleRef.Kind, printable.Name(b.roleRef.Name), printable.Name(b.Namespace))
		}

		for i := range rules {
			writes, is := writesGiven(&rules[i])
			if !is {
				continue
			}

			given[writes] = append(given[writes], b.Namespace)

			if b.live {
				r.report.notef("the fence lets through what %s of the cluster gives now", b.doc)
			}
		}
	}

	out := make([]string, 0, len(given))

	for writes, namespaces := range given {
		slices.Sort(namespaces)
		namespaces = slices.Compact(namespaces)

		where := isOneOf("variables.where", namespaces)
		if len(namespaces) == 1 {
			where = "variables.where == " + quoted(namespaces[0])
		}

		out = append(out, "("+where+writes+")")
	}

	slices.Sort(out)

	return out
}

// writesGiven are the conditions, besides that of where, under which a rule gives a write, as RBAC reads rules
// (k8s.io/kubernetes/pkg/apis/rbac/v1, evaluation_helpers.go); false for a rule that gives none.
func writesGiven(rule *rbacv1.PolicyRule) (conditions string, is bool) {
	allowed := operationsOf(rule.Verbs)
	if len(allowed) == 0 {
		return "", false
	}

	limit := func(variable string, values []string) {
		if !slices.Contains(values, wildcard) {
			conditions += " && " + isOneOf(variable, values)
		}
	}

	limit("request.operation", allowed)
	limit("request.resource.group", rule.APIGroups)

	if !slices.Contains(rule.Resources, wildcard) {
		var subs []string

		for _, resource := range rule.Resources {
			if sub, every := strings.CutPrefix(resource, "*/"); every {
				subs = append(subs, sub)
			}
		}

		what := isOneOf("variables.what", rule.Resources)
		if len(subs) > 0 {
			what = "(" + what + " || " + isOneOf("variables.sub", subs) + ")"
		}

		conditions += " && " + what
	}

	if len(rule.ResourceNames) > 0 {
		named := isOneOf("variables.name", rule.ResourceNames)
		// RBAC is asked without a name whether an object may be created, and admission is told that of the object.
		if slices.Contains(rule.ResourceNames, "") {
			named = "(" + named + " || request.operation == 'CREATE' && variables.sub == '')"
		}

		conditions += " && " + named
	}

	return conditions, true
}

// operations are those by which admission knows the requests that verbs allow.
var operations = map[string]admissionv1.OperationType{
	verbCreate: admissionv1.Create, "update": admissionv1.Update, "patch": admissionv1.Update, "delete": admissionv1.Delete,
	"deletecollection": admissionv1.Delete, "get": admissionv1.Connect,
}

// operationsOf are the operations that verbs allow. A connection, such as one to a pod, may be asked for by every verb of a
// single object.
func operationsOf(verbs []string) []string {
	if slices.Contains(verbs, wildcard) {
		return []string{wildcard}
	}

	var out []string

	for _, verb := range verbs {
		if operation, is := operations[verb]; is {
			out = append(out, string(operation), string(admissionv1.Connect))
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

func isOneOf(variable string, values []string) string {
	return variable + " in [" + strings.Join(collect.Map(values, quoted), ", ") + "]"
}

// quoted is a string of CEL. Its escapes are those of JSON and more.
func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // Strings can be written.
	}

	return string(raw)
}

// Validate says what does not go together.
func (o *Options) Validate() error {
	switch {
	case o.As != AsScope && o.As != AsTemplate:
		return fmt.Errorf("--as is %q; give scope or template", o.As)
	case o.As == AsTemplate && o.Fence != nil:
		return errors.New("a fence follows the watch list of a NamespaceScope; leave out --as template")
	default:
		return nil
	}
}
