package narrow

import (
	"maps"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// declared are the declarations of a version that have somebody else give rights, and what they give by themselves.
type declared struct {
	namespace string
	// whole says that what a template gives counts as held wherever an instance may bind it, also if the files say where.
	whole     bool
	grants    []grant
	templates map[string]*Document
	instances []instance
	settings  []settings
	opaque    []*Document
	// made are the accounts that OLM makes.
	made map[Account]bool
	// read are what was read, by their identities.
	read map[string]*Document
}

// declaredBy reads the declarations of a stream, those of an old version as a whole. Objects without a namespace are in the given
// one.
func declaredBy(s *Stream, namespace string, whole bool) (*declared, error) {
	out := &declared{
		namespace: namespace, whole: whole, templates: map[string]*Document{}, made: map[Account]bool{}, read: map[string]*Document{},
	}

	for d := range s.objects() {
		if err := out.take(d); err != nil {
			return nil, err
		}
	}

	return out, out.bindTemplates()
}

func (v *declared) take(d *Document) error {
	read := v.reader(d)

	switch {
	case read == nil && carriesRights(d):
		v.opaque = append(v.opaque, d)

		return nil
	case read == nil:
		return nil
	}

	// What is compared is what kubectl would send.
	if err := d.makePlain(); err != nil {
		return d.failed(err)
	}

	key := identity(d.APIVersion+"/"+d.Kind, v.at(d), d.Name)
	if other := v.read[key]; other != nil {
		return twice(d, other)
	}

	v.read[key] = d

	return read(d)
}

// reader returns what reads a declaration; nil for everything else, and for versions that nobody knows.
func (v *declared) reader(d *Document) func(*Document) error {
	switch d.APIVersion + "/" + d.Kind {
	case "operators.coreos.com/v1alpha1/" + scope.KindCSV:
		return v.takeVersion
	case "operators.coreos.com/v1/OperatorGroup", "operators.coreos.com/v1alpha2/OperatorGroup",
		"operators.coreos.com/v1alpha1/OperatorGroup":
		return v.takeGroup
	case "operators.coreos.com/v1alpha1/ScopeTemplate", "operators.io.operator-framework/v1alpha1/ScopeTemplate":
		return v.takeTemplate
	case "operators.coreos.com/v1alpha1/ScopeInstance", "operators.io.operator-framework/v1alpha1/ScopeInstance":
		return v.takeInstance
	case "operator.ibm.com/v1/NamespaceScope", "namespacescope.ibm.com/v1alpha1/NamespaceScope":
		return v.takeScope
	case "apiextensions.k8s.io/v1/" + kindDefinition:
		if text(d.body, "spec", "conversion", "strategy") == "Webhook" {
			return v.takeDefinition
		}
	case "apiregistration.k8s.io/v1/APIService", "apiregistration.k8s.io/v1beta1/APIService":
		return v.takeAPIService
	}

	if strings.HasPrefix(d.APIVersion, admissionv1.GroupName+"/") && strings.HasSuffix(d.Kind, "WebhookConfiguration") {
		return v.takeWebhooks
	}

	return nil
}

func (v *declared) at(d *Document) string { return d.placeIn(v.namespace) }

// takeVersion takes what installing a ClusterServiceVersion gives its accounts, and what its operators answer.
func (v *declared) takeVersion(d *Document) error {
	csv := &olm.ClusterServiceVersion{}
	if err := d.into(csv); err != nil {
		return err
	}

	csv.ObjectMeta = metav1.ObjectMeta{Namespace: v.at(d), Name: csv.Name} // When it is deleted, the API server says.

	v.takeManaged(d)

	for _, b := range compile.ClusterServiceVersion(csv, compile.Install{}).Binds {
		g := grant{places: []place{{}}, rules: b.Rules, role: d.String(), doc: d}
		if !b.Everywhere {
			g.places = []place{in(csv.Namespace), {text: "in the targets of the OperatorGroup of namespace " + csv.Namespace}}
		}

		v.give(g, b.Subjects)

		for i := range b.Subjects {
			v.made[Account{Namespace: b.Subjects[i].Namespace, Name: b.Subjects[i].Name}] = true
		}
	}

	for i := range csv.Spec.WebhookDefinitions {
		w := &csv.Spec.WebhookDefinitions[i]
		by := rbacv1.Subject{Kind: validates, Name: "Deployment " + csv.Namespace + "/" + w.DeploymentName}

		switch w.Type {
		case olm.MutatingAdmissionWebhook:
			by.Kind = mutates
		case olm.ConversionWebhook:
			by.Kind = converts
		case olm.ValidatingAdmissionWebhook:
		}

		for _, name := range w.ConversionCRDs {
			plural, group, _ := strings.Cut(name, ".")
			v.answer(d, by, []place{{}}, rbacv1.PolicyRule{
				APIGroups: []string{group}, Resources: []string{plural}, Verbs: []string{"convert"},
			})
		}

		v.answerRules(d, by, w.Rules, w.MatchPolicy, limits{Objects: w.ObjectSelector})
	}

	for i := range csv.Spec.APIServiceDefinitions.Owned {
		a := &csv.Spec.APIServiceDefinitions.Owned[i]
		v.answerAPI(d, "Deployment "+csv.Namespace+"/"+a.DeploymentName, a.Group)
	}

	return nil
}

func in(namespace string) place { return place{namespace: namespace} }

func (v *declared) give(g grant, subjects []rbacv1.Subject) {
	for i := range subjects {
		g.subject = scope.Holder(&subjects[i])
		v.grants = append(v.grants, g)
	}
}

func (v *declared) takeTemplate(d *Document) error {
	if other := v.templates[d.Name]; other != nil {
		return twice(d, other)
	}

	v.templates[d.Name] = d

	return nil
}

type instance struct {
	doc      *Document
	template string
	places   []place
}

func (v *declared) takeInstance(d *Document) error {
	i := &operatorsv1alpha1.ScopeInstance{}
	if err := d.into(i); err != nil {
		return err
	}

	i.ObjectMeta, i.Status = metav1.ObjectMeta{Name: d.Name}, operatorsv1alpha1.ScopeInstanceStatus{}
	members := compile.ScopeInstance(i, nil).Members
	v.instances = append(v.instances, instance{d, i.Spec.ScopeTemplateName, placesOf(&members)})

	return nil
}

// bindTemplates gives what ScopeTemplates give, where ScopeInstances bind it. What a template gives counts even if no instance is
// in the files.
func (v *declared) bindTemplates() error {
	binds := map[string][]scope.Binding{}

	for _, name := range slices.Sorted(maps.Keys(v.templates)) {
		d, t := v.templates[name], &operatorsv1alpha1.ScopeTemplate{}
		if err := d.into(t); err != nil {
			return err
		}

		t.ObjectMeta = metav1.ObjectMeta{Name: name}
		binds[name] = compile.ScopeTemplate(t, true).Binds

		if v.whole || !slices.ContainsFunc(v.instances, func(i instance) bool { return i.template == name }) {
			v.bind(d, d.String(), binds[name], []place{{text: "wherever a ScopeInstance binds it"}})
		}
	}

	for _, i := range v.instances {
		if t := v.templates[i.template]; t != nil {
			v.bind(t, i.doc.String()+" and "+t.String(), binds[i.template], i.places)

			continue
		}

		// Its template is elsewhere: nobody knows whom it binds, and to what.
		role := kindTemplate + " " + i.template
		v.grants = append(v.grants, grant{
			subject: rbacv1.Subject{Kind: kindTemplate, Name: i.template}, places: i.places,
			unknown: []string{role}, role: role, binding: i.doc.String(), doc: i.doc,
		})
	}

	return nil
}

func (v *declared) bind(d *Document, role string, binds []scope.Binding, where []place) {
	for i := range binds {
		v.give(grant{places: where, rules: binds[i].Rules, role: role, doc: d}, binds[i].Subjects)
	}
}

// placesOf are where members are.
func placesOf(m *scope.Members) []place {
	if m.Everywhere {
		return []place{{}}
	}

	out := collect.Map(m.Named, in)

	if m.Selector != nil {
		out = append(out, place{text: "in the namespaces with labels " + m.Selector.String()})
	}

	return slices.Clip(out)
}
