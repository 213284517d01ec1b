package reconcile_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/servingcert"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// regroup changes what the OperatorGroup asks for.
func (w *world) regroup(spec string) {
	w.Helper()

	g := w.groupNamed(ops, "group")
	w.Change(g, func() { g.Spec = decoded[operatorsv1.OperatorGroupSpec](w, spec) })
}

// rehook changes the one webhook configuration.
func (w *world) rehook(edit func(*admissionv1.ValidatingWebhookConfiguration)) {
	w.Helper()

	hooks := w.hooks()
	if len(hooks) != 1 {
		w.Fatalf("there are %d webhooks", len(hooks))
	}

	if c, ok := hooks[0].config.(*admissionv1.ValidatingWebhookConfiguration); ok {
		w.Change(c, func() { edit(c) })
	}
}

// TestCSVWebhooksFollow: what changes is taken up by the next call, and what others do to what Ambit made is undone.
func TestCSVWebhooksFollow(t *testing.T) {
	t.Parallel()

	kept := []string{validating}

	for name, tc := range map[string]struct {
		change func(w *world)
		asked  []string
		phase  string
	}{
		"a target takes the place of another": {
			change: func(w *world) { w.regroup(`{"targetNamespaces":["b>","ops>"]}`) }, asked: inB(), phase: installing,
		},
		"a group that is for nobody any more": {
			change: func(w *world) { w.regroup(`{"selector":{"matchLabels":{"team":"green>"}}}`) }, asked: []string{},
			phase: "Failed NoTargetNamespaces",
		},
		"a second group": {
			change: func(w *world) { w.group("another", `{}`) }, asked: []string{}, phase: "Failed TooManyOperatorGroups",
		},
		"a webhook that is taken from the version": {
			change: func(w *world) {
				w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions = nil })
			},
			asked: []string{}, phase: installing,
		},
		"somebody widens it": {
			change: func(w *world) {
				w.rehook(func(c *admissionv1.ValidatingWebhookConfiguration) {
					c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{}
				})
			},
			asked: kept, phase: succeeded,
		},
		"somebody has it be about more": {
			change: func(w *world) {
				w.rehook(func(c *admissionv1.ValidatingWebhookConfiguration) { c.Webhooks[0].Rules = about("", "*") })
			},
			asked: kept, phase: succeeded,
		},
		"somebody leads it elsewhere": {
			change: func(w *world) {
				w.rehook(func(c *admissionv1.ValidatingWebhookConfiguration) {
					c.Webhooks[0].ClientConfig.Service.Name = "theirs"
				})
			},
			asked: kept, phase: succeeded,
		},
		"somebody takes its marks": {
			change: func(w *world) {
				w.rehook(func(c *admissionv1.ValidatingWebhookConfiguration) {
					c.Labels = nil
					c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{}
				})
			},
			asked: kept, phase: succeeded,
		},
		"somebody deletes it": {
			change: func(w *world) { w.Remove(w.hooks()[0].config) }, asked: kept, phase: succeeded,
		},
		"somebody deletes the Service": {change: func(w *world) { w.Remove(w.service()) }, asked: kept, phase: succeeded},
		"somebody leads the Service elsewhere": {
			change: func(w *world) {
				s := w.service()
				w.Change(s, func() { s.Spec.Selector = map[string]string{"app": "theirs"} })
			},
			asked: kept, phase: succeeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := consulting(t)
			before, _ := w.certificate()

			tc.change(w)
			w.reconcileGroup()

			is(w, "what is asked", w.consulted(), tc.asked)
			is(w, "the Service", w.leads(), leading)
			is(w, "phase", w.phase(), tc.phase)

			if after, _ := w.certificate(); !bytes.Equal(before, after) {
				t.Error("the certificate was made anew for nothing")
			}
		})
	}
}

// TestNobodyIsAskedAnyMore: what API servers ask ends with the operator, although nobody collects garbage.
func TestNobodyIsAskedAnyMore(t *testing.T) {
	t.Parallel()

	for name, gone := range map[string]func(w *world){
		"the version": func(w *world) { w.Remove(w.operatorCSV(podTemplate("op"))) },
		"the group": func(w *world) {
			w.Remove(w.groupNamed(ops, "group"))
		},
		"both": func(w *world) {
			w.Remove(w.operatorCSV(podTemplate("op")))
			w.Remove(w.groupNamed(ops, "group"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.csv("*", asking("m.example.com", mutates), asking("v.example.com"))
			w.installed()
			is(w, "how many webhooks there are before", len(w.consulted()), 2)

			gone(w)
			w.reconcileGroup()

			is(w, "what is asked", w.consulted(), []string{})
			is(w, "where the operator has permissions", w.served(), []string{})
		})
	}
}

// resecret changes what the Secret holds.
func (w *world) resecret(edit func(*corev1.Secret)) {
	w.Helper()

	s := w.servingSecret()
	w.Change(s, func() { edit(s) })
}

// TestServingCertificate: which certificates are made anew, whom API servers trust then, and that pods begin anew with them.
func TestServingCertificate(t *testing.T) {
	t.Parallel()

	hold := func(w *world, s *corev1.Secret, pair *servingcert.Pair, err error) {
		if err != nil {
			w.Fatal(err)
		}

		s.Data = map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key, "olmCAKey": pair.Authorities}
	}
	aged := func(age time.Duration) func(*world) {
		return func(w *world) {
			pair, err := servingcert.Make(w.hosts(), time.Now().Add(-age), nil)
			w.resecret(func(s *corev1.Secret) { hold(w, s, pair, err) })
		}
	}

	for name, tc := range map[string]struct {
		change func(w *world)
		// anew says that the certificate is another one after it, and trusted that what was there goes on being trusted.
		anew, trusted bool
	}{
		"one that is good for long stays":            {change: aged(time.Hour), trusted: true},
		"one that is about to end is made anew":      {change: aged(servingcert.Life * 5 / 6), anew: true, trusted: true},
		"one that has ended is not trusted any more": {change: aged(servingcert.Life + time.Hour), anew: true},
		"one for others is of no use": {
			change: func(w *world) {
				pair, err := servingcert.Make([]string{"theirs.svc"}, time.Now(), nil)
				w.resecret(func(s *corev1.Secret) { hold(w, s, pair, err) })
			},
			anew: true, trusted: true,
		},
		"one that cannot be read is made anew": {
			change: func(w *world) { w.resecret(func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("nonsense") }) }, anew: true,
			trusted: true,
		},
		"one that is gone is made anew": {change: func(w *world) { w.Remove(w.servingSecret()) }, anew: true},
		"one that goes with nobody is nobody's": {
			change: func(w *world) { w.resecret(func(s *corev1.Secret) { s.OwnerReferences = nil }) }, anew: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.csv("*", asking("v.example.com"))
			w.installed()

			tc.change(w)

			certificate, authorities := w.certificate()
			told := w.live("op").Spec.Template.Annotations["olmcahash"]

			w.reconcileGroup()

			after, trusted := w.certificate()
			is(w, "the certificate is made anew", !bytes.Equal(certificate, after), tc.anew)
			is(w, "what was there is trusted", len(authorities) > 0 && bytes.Contains(trusted, authorities), tc.trusted)
			is(w, "what is asked", w.consulted(), []string{validating})

			pair := &servingcert.Pair{Certificate: after, Key: w.key(), Authorities: trusted}
			if err := pair.Check(w.hosts(), time.Now()); err != nil {
				t.Error(err)
			}

			is(w, "what pods are told", w.live("op").Spec.Template.Annotations["olmcahash"], pair.Newest())
			is(w, "pods were told of another one before", told != "", true)
		})
	}
}

// TestServingCertificateOfWhatWaits: a certificate that is about to end is made anew also while the version that runs is not
// written itself, because it is being replaced or waits for something; and it is looked at again.
func TestServingCertificateOfWhatWaits(t *testing.T) {
	t.Parallel()

	for phase, waits := range map[string]func(w *world){
		replaced: func(w *world) { w.newer() },
		pending: func(w *world) {
			w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { w.owning("absents", "Absent")(c) })
		},
	} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.csv("*", asking("v.example.com"))
			w.installed()
			waits(w)
			w.reconcileGroup()
			is(w, "phase", w.phase(), phase)

			pair, err := servingcert.Make(w.hosts(), time.Now().Add(-servingcert.Life*5/6), nil)
			if err != nil {
				t.Fatal(err)
			}

			w.resecret(func(s *corev1.Secret) {
				s.Data = map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key, "olmCAKey": pair.Authorities}
			})
			w.reconcileGroup()

			certificate, trusted := w.certificate()
			now := &servingcert.Pair{Certificate: certificate, Key: w.key(), Authorities: trusted}

			if err := now.Check(w.hosts(), time.Now()); err != nil {
				t.Error(err)
			}

			is(w, "what was there is trusted", bytes.Contains(trusted, pair.Authorities), true)
			is(w, "what is asked", w.consulted(), []string{validating})
			is(w, "what pods are told", w.live("op").Spec.Template.Annotations["olmcahash"], now.Newest())
			is(w, "phase afterwards", w.phase(), phase)

			again := w.answered(w.groups, scope.Installs.In(w.ns(ops)), func() {}).RequeueAfter
			is(w, "it is looked at again within ten minutes", again > 0 && again <= 10*time.Minute, true)
		})
	}
}

func (w *world) hosts() []string {
	return []string{"op-service." + w.ns(ops) + ".svc", "op-service." + w.ns(ops)}
}

func (w *world) key() []byte {
	w.Helper()

	s := w.servingSecret()
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		w.Fatal(err)
	}

	return s.Data[corev1.TLSPrivateKeyKey]
}

// TestServingOfOthers: what stands where an operator's webhooks need something is not taken, nobody is asked by it, and the
// operator is installed once it is out of the way.
func TestServingOfOthers(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		theirs func(w *world) client.Object
		says   string
	}{
		"a Service": {
			func(w *world) client.Object {
				s := w.service()
				s.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}, Selector: map[string]string{"app": "theirs"}}

				return s
			}, "Service op-service",
		},
		"a Secret": {func(w *world) client.Object { return w.servingSecret() }, "Secret op-service-cert"},
		"a Secret that says it goes with the version": {
			func(w *world) client.Object {
				s := w.servingSecret()
				s.Labels = map[string]string{"olm.owner": "op.v1", "olm.owner.namespace": w.ns(ops), "app.kubernetes.io/managed-by": "ambit"}

				return s
			}, "Secret op-service-cert",
		},
		"a Deployment": {
			func(w *world) client.Object {
				t := podTemplate("theirs")

				return &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op"},
					Spec:       appsv1.DeploymentSpec{Selector: selectorOf(&t), Template: t},
				}
			}, "Deployment op",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			theirs := tc.theirs(w)
			w.Make(theirs)
			w.group("group", inA)
			w.csv("*", asking("v.example.com"))
			w.reconcileGroup()

			is(w, "phase", w.phase(), "Failed InstallComponentFailed")
			w.names("the message", w.message(), tc.says+" exists that Ambit did not make")

			again := w.answered(w.groups, scope.Installs.In(w.ns(ops)), func() {}).RequeueAfter
			if soon := again > 0 && again <= time.Minute; soon != strings.HasPrefix(tc.says, "Secret") {
				t.Errorf("it is looked again in %s, want that of Secrets, of which no watch tells", again)
			}

			is(w, "how many webhooks there are", len(w.hooks()), 0)

			version := theirs.GetResourceVersion()
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
				t.Fatal(err)
			}

			is(w, "the version of what is theirs", theirs.GetResourceVersion(), version)

			w.Remove(theirs)
			w.installed()
			is(w, "what is asked", w.consulted(), []string{validating})
		})
	}
}

// TestNobodyChoosesTheCertificate: a Secret that is recorded as Ambit's, which anybody may have recorded, is replaced.
func TestNobodyChoosesTheCertificate(t *testing.T) {
	t.Parallel()

	w := grouped(t)

	theirs, err := servingcert.Make(w.hosts(), time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}

	s := w.servingSecret()
	s.Type = corev1.SecretTypeTLS
	s.Data = map[string][]byte{"tls.crt": theirs.Certificate, "tls.key": theirs.Key, "olmCAKey": theirs.Authorities}

	if err := w.Client.Create(t.Context(), s, client.FieldOwner("ambit")); err != nil {
		t.Fatal(err)
	}

	w.group("group", inA)
	w.csv("*", asking("v.example.com"))
	w.installed()
	is(w, "what is asked", w.consulted(), []string{validating})

	if certificate, trusted := w.certificate(); bytes.Equal(certificate, theirs.Certificate) ||
		bytes.Contains(trusted, theirs.Authorities) {
		t.Error("API servers trust what somebody else has the key of")
	}
}

// converts shows how the definition of the case converts: "op-service:443/convert", or the strategy.
func (w *world) converts() string {
	w.Helper()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Name: "things." + w.long(apiGroup)}, crd); err != nil {
		w.Fatal(err)
	}

	c := crd.Spec.Conversion
	if c.Strategy != apiextensionsv1.WebhookConverter {
		return string(c.Strategy)
	}

	s := c.Webhook.ClientConfig.Service

	secret := &corev1.Secret{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Name + "-cert"}, secret); err != nil {
		w.Fatal(err)
	}

	if ca := secret.Data["olmCAKey"]; !bytes.Equal(ca, c.Webhook.ClientConfig.CABundle) || len(ca) == 0 {
		w.Error("the definition trusts another certificate than the operator has")
	}

	return w.called(s.Namespace) + "/" + s.Name + *s.Path
}

// convertsInB makes an operator of all namespaces in b that runs, brings another version of the definition, and would convert it.
func (w *world) convertsInB() {
	w.Helper()

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + w.long(apiGroup)}}
	w.Change(crd, func() {
		v2 := crd.Spec.Versions[0].DeepCopy()
		v2.Name, v2.Storage = "v2", false
		crd.Spec.Versions = append(crd.Spec.Versions, *v2)
	})

	w.installsIn("b")
	w.Make(w.groupNamed("b", "others"))
	w.csvIn("b", "AllNamespaces", w.owning("things", "Thing"), conversion(), w.named, func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned[0].Version = "v2"
	})
	w.reconcileGroupIn("b")
	w.rollOutIn("b")
	w.reconcileGroupIn("b")
}

// TestConversion: which definitions are converted by their operator, since when, and that it stays so.
func TestConversion(t *testing.T) {
	t.Parallel()

	const byOperator = "ops/op-service/convert"

	for name, tc := range map[string]struct {
		modes  string
		edit   func(*olmv1alpha1.WebhookDescription)
		change func(w *world)
		// after is how it converts in the end, and says what is said of one that may not.
		phase, after string
		says         []string
	}{
		"an operator of all namespaces converts what it brings": {modes: "AllNamespaces", phase: succeeded, after: byOperator},
		"what somebody else makes of it is undone": {
			modes: "AllNamespaces", phase: succeeded, after: byOperator, change: func(w *world) {
				crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + w.long(apiGroup)}}
				w.Change(crd, func() {
					crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
				})
			},
		},
		"so is what somebody else makes of it who is called by a URL": {
			modes: "AllNamespaces", phase: succeeded, after: byOperator, change: func(w *world) {
				crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + w.long(apiGroup)}}
				w.Change(crd, func() {
					crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
						Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
							ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://example.com/convert")},
							ConversionReviewVersions: []string{"v1"},
						},
					}
				})
			},
		},
		"it stays when the operator goes: to convert by none would lose fields": {
			modes: "AllNamespaces", after: byOperator,
			change: func(w *world) { w.Remove(w.operatorCSV(podTemplate("op"))) },
		},
		"another operator that brings another version of it leaves it alone while this one runs": {
			modes: "AllNamespaces", phase: succeeded, after: byOperator, change: func(w *world) {
				w.convertsInB()
				is(w, "how it converts beside another", w.converts(), byOperator)

				theirs := w.versionIn("b", "op.v1").Status
				is(w, "phase of the other", fmt.Sprintf("%s %s", theirs.Phase, theirs.Reason), "Failed InstallComponentFailed")
				w.names("the message of the other", w.called(theirs.Message), "ops/op.v1 brings another version of things.g.example.com")
			},
		},
		"and has it once this one is gone": {
			modes: "AllNamespaces", after: "b/op-service/convert", change: func(w *world) {
				w.convertsInB()
				w.Remove(w.operatorCSV(podTemplate("op")))
				w.reconcileGroup()
				w.reconcileGroupIn("b")
			},
		},
		"an operator that may be for some namespaces does not": {
			modes: "*", phase: invalidWebhook, after: "None", says: []string{"c.example.com", "AllNamespaces"},
		},
		"what it does not bring is not its to convert": {
			modes: "AllNamespaces", edit: func(d *olmv1alpha1.WebhookDescription) { d.ConversionCRDs = []string{"others.example.com"} },
			phase: invalidWebhook, after: "None", says: []string{"does not own others.example.com"},
		},
		"no definition is none": {
			modes: "AllNamespaces", edit: func(d *olmv1alpha1.WebhookDescription) { d.ConversionCRDs = nil },
			phase: invalidWebhook, after: "None", says: []string{"no definition in conversionCRDs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.definition("things", "Thing")
			w.group("group", `{}`)

			if tc.edit == nil {
				tc.edit = func(*olmv1alpha1.WebhookDescription) {}
			}

			w.csv(tc.modes, w.owning("things", "Thing"), conversion(tc.edit), w.named)
			w.reconcileGroup()
			is(w, "how it converts before the operator runs", w.converts(), "None")

			if tc.says == nil {
				w.installed()
				is(w, "how it converts", w.converts(), byOperator)
			} else {
				w.names("the message", w.message(), tc.says...)
			}

			if tc.change != nil {
				tc.change(w)
				w.reconcileGroup()
			}

			is(w, "how it converts in the end", w.converts(), tc.after)

			if tc.phase != "" {
				is(w, "phase", w.phase(), tc.phase)
			}
		})
	}
}

// TestWebhooksLeaveWithTheTarget: nobody is asked about a namespace that has left the group, whatever keeps the rest of the
// operator from being written.
func TestWebhooksLeaveWithTheTarget(t *testing.T) {
	t.Parallel()

	theirs := func(obj func(w *world) client.Object) func(*world) {
		return func(w *world) {
			w.Remove(obj(w))
			w.Make(obj(w))
		}
	}
	deployment := func(w *world) client.Object {
		t := podTemplate("theirs")

		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op"},
			Spec:       appsv1.DeploymentSpec{Selector: selectorOf(&t), Template: t},
		}
	}
	service := func(w *world) client.Object {
		s := w.service()
		s.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}, Selector: map[string]string{"app": "theirs"}}

		return s
	}
	secret := func(w *world) client.Object {
		s := w.servingSecret()
		s.Type = corev1.SecretTypeTLS
		s.OwnerReferences = w.owned("op.v1")

		pair, err := servingcert.Make(w.hosts(), time.Now(), nil)
		if err != nil {
			w.Fatal(err)
		}

		s.Data = map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key, "olmCAKey": pair.Authorities}

		return s
	}
	waits := func(w *world) {
		w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { w.owning("absents", "Absent")(c) })
	}

	for name, tc := range map[string]struct {
		breaks func(w *world)
		phase  string
		// asked is about what it is asked in the end; nothing where it is not known any more by which certificate it answers.
		asked []string
	}{
		"somebody else's Service":    {breaks: theirs(service), phase: refused, asked: inB()},
		"somebody else's Secret":     {breaks: theirs(secret), phase: refused, asked: []string{}},
		"somebody else's Deployment": {breaks: theirs(deployment), phase: refused, asked: inB()},
		"a Deployment that is refused": {
			breaks: func(w *world) {
				w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
					c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Name = "No Name"
				})
			},
			phase: refused, asked: inB(),
		},
		"a version that waits for something": {breaks: waits, phase: pending, asked: inB()},
		"one whose Secret is gone": {
			breaks: func(w *world) { waits(w); w.Remove(w.servingSecret()) }, phase: pending, asked: []string{},
		},
		"one whose Secret is somebody else's": {
			breaks: func(w *world) { waits(w); theirs(secret)(w) }, phase: pending, asked: []string{},
		},
		"a version that is replaced, of such a Secret": {
			breaks: func(w *world) { w.newer(); theirs(secret)(w) }, phase: replaced, asked: []string{},
		},
		"a version that may not be annotated": {
			breaks: func(w *world) { w.ruleless("clusterserviceversions") }, phase: refused, asked: inB(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.Make(testbed.Account(w.ns(ops), "scoped"))
			w.group("group", inAByAccount)
			w.csv("*", asking("v.example.com"))
			w.givesNeeds(ops)
			w.givesNeeds("a")
			w.givesNeeds("b")
			w.installed()
			is(w, "what is asked before", w.consulted(), []string{validating})

			tc.breaks(w)
			w.regroup(`{"targetNamespaces":["b>","ops>"],"serviceAccountName":"scoped"}`)
			w.reconcileGroup()

			is(w, "phase", w.phase(), tc.phase)
			is(w, "what is asked", w.consulted(), tc.asked)
		})
	}
}

// TestWebhooksStayWhereTheyMay: a group that gains a target keeps the webhooks that check what is asked for in the others, while
// nobody can tell whom API servers are to trust: also where that lasts, since what is gone is not made for a version that waits.
func TestWebhooksStayWhereTheyMay(t *testing.T) {
	t.Parallel()

	const inTwo, inThree = `{"targetNamespaces":["a>","ops>"]}`, `{"targetNamespaces":["a>","b>","ops>"]}`

	inAll := []string{strings.Replace(validating, "(a,ops)", "(a,b,ops)", 1)}

	for name, tc := range map[string]struct {
		status        int
		before, after string
		// during and later are about what it is asked while the Secret cannot be read, and once it can be.
		during, later []string
		// fails says that it is tried again soon; what was refused is looked at again as Secrets are, of which no watch tells.
		fails bool
	}{
		"a target came, and the API server fails": {
			http.StatusInternalServerError, inTwo, inThree, []string{validating}, inAll, true,
		},
		"a target came, and it is refused": {http.StatusForbidden, inTwo, inThree, []string{validating}, inAll, false},
		"a target went, and the API server fails": {
			http.StatusInternalServerError, inThree, inTwo, inAll, []string{validating}, true,
		},
		"a target went, and it is refused": {http.StatusForbidden, inThree, inTwo, []string{}, []string{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", tc.before)
			w.csv("*", asking("v.example.com"))
			w.installed()

			w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { w.owning("absents", "Absent")(c) })
			w.reconcileGroup()
			is(w, "phase", w.phase(), pending)

			w.refuses = refusing("get secrets ops/op-service-cert", tc.status)
			w.regroup(tc.after)

			var last call
			for range 4 {
				last = w.groupOnce()
			}

			is(w, "what is asked meanwhile", w.consulted(), tc.during)
			is(w, "it fails", last.err != nil, tc.fails)

			if again := last.RequeueAfter; !tc.fails && (again <= 0 || again > 10*time.Minute) {
				t.Errorf("it is looked again in %s, want that of Secrets, of which no watch tells", again)
			}

			w.refuses = nil
			w.reconcileGroup()
			is(w, "what is asked after", w.consulted(), tc.later)
		})
	}
}

func inB() []string { return []string{strings.Replace(validating, "(a,ops)", "(b,ops)", 1)} }

// owned are owner references to a ClusterServiceVersion, which anybody may write.
func (w *world) owned(version string) []metav1.OwnerReference {
	w.Helper()

	return []metav1.OwnerReference{{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: version, UID: w.versionCalled(version).UID,
	}}
}

// ruleless takes from the account of the group what it may do with a resource of its own namespace, and waits until the API
// server goes by it.
func (w *world) ruleless(resource string) {
	w.Helper()

	var roles rbacv1.RoleList
	if err := w.client.List(w.Context(), &roles, client.InNamespace(w.ns(ops))); err != nil {
		w.Fatal(err)
	}

	for i := range roles.Items {
		r := &roles.Items[i]
		if strings.HasPrefix(r.Name, "needed-") {
			w.Change(r, func() {
				r.Rules = slices.DeleteFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, resource) })
			})
		}
	}

	w.MayNot(w.ns(ops), "scoped", w.ns(ops), "patch "+resource+"/op.v1")
}
