package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/servingcert"
)

// checkSecretsEvery is how often the Secrets of webhooks are looked at, which no watch reports. They are read by name, and as the
// identity of the install, because watching them would take the right to read the Secrets of others.
const checkSecretsEvery = 10 * time.Minute

// checkClashEvery is how often it is looked whether a Secret of somebody else is still in the way.
const checkClashEvery = time.Minute

// serving writes the Services and Secrets by which the Deployments of a CSV answer for webhooks, and returns what API servers are
// to trust, by Deployment.
func (p *state) serving(ctx context.Context, m *member) (map[string][]byte, error) {
	bundles := map[string][]byte{}

	for _, s := range install.ServingOf(m.csv) {
		service, err := p.snapshot.ServiceToWrite(m.csv, &s)
		if err == nil && service != nil {
			err = p.put(ctx, service)
		}

		var pair *servingcert.Pair

		if err == nil {
			pair, err = p.certificate(ctx, m, &s)
		}

		if clash, is := errors.AsType[*install.ClashError](err); is {
			m.refusal = clash.Error() // It stays so until somebody changes something, and that is heard of, but for Secrets.

			return nil, err
		}

		if err != nil {
			p.stopInFull(ctx, m, err)

			return nil, err
		}

		bundles[s.Deployment], p.snapshot.Certificates[s.Deployment] = pair.Authorities, pair.Newest()
		p.checkAt(pair)
	}

	return bundles, nil
}

// certificate is that of a Deployment, as it is in the cluster, or a new one that was written.
func (p *state) certificate(ctx context.Context, m *member, s *install.Serving) (*servingcert.Pair, error) {
	secret, err := p.Applier.Secret(ctx, p.as.Writes, m.csv.Namespace, s.Secret)
	if err != nil {
		return nil, err
	}

	if secret != nil && !apply.IsMade(secret) {
		p.checkBy(p.facts.Now.Add(checkClashEvery))

		return nil, &install.ClashError{Kind: "Secret", Name: s.Secret}
	}

	pair := p.pairOf(secret)
	fits := pair != nil && pair.Check(s.Hosts, p.facts.Now) == nil

	if fits && install.IsOwnedBy(secret, m.csv) {
		return pair, nil
	}

	if !fits {
		return p.newCertificate(ctx, m, s, pair)
	}

	return pair, p.writeSecret(ctx, m, s, pair)
}

// newCertificate makes the certificate of a Deployment anew, and writes it.
func (p *state) newCertificate(
	ctx context.Context, m *member, s *install.Serving, before *servingcert.Pair,
) (*servingcert.Pair, error) {
	pair, err := servingcert.Make(s.Hosts, p.facts.Now, before)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", s.Service, err)
	}

	return pair, p.writeSecret(ctx, m, s, pair)
}

func (p *state) writeSecret(ctx context.Context, m *member, s *install.Serving, pair *servingcert.Pair) error {
	obj, err := install.SecretToWrite(m.csv, s, pair)
	if err == nil {
		err = p.put(ctx, obj)
	}

	return err
}

// pairOf is the pair in a Secret; nil when Ambit did not make that Secret, or does not use it.
func (p *state) pairOf(secret *corev1.Secret) *servingcert.Pair {
	if secret == nil || !apply.IsMade(secret) {
		return nil
	}

	return p.snapshot.PairOf(secret)
}

// checkAt notes when a certificate has to be looked at next.
func (p *state) checkAt(pair *servingcert.Pair) {
	p.checkBy(p.facts.Now.Add(checkSecretsEvery))
	p.checkBy(pair.RenewAt())
}

// checkBy has the namespace planned again by a time, without any change.
func (p *state) checkBy(next time.Time) { p.nextCheck = plan.Sooner(p.nextCheck, next) }

// answering has API servers ask the operator of a CSV, once it can answer.
func (p *state) answering(ctx context.Context, m *member, bundles map[string][]byte) {
	m.answers = true

	p.writeWebhooks(ctx, m, bundles)

	if !m.stopped() {
		p.convert(ctx, m, bundles)
	}
}

// convert writes how definitions convert. Nothing new comes of a ClusterServiceVersion of which not all was written, and it takes
// back nothing that another one, such as the one that replaces it, converts by now.
func (p *state) convert(ctx context.Context, m *member, bundles map[string][]byte) {
	for _, c := range p.snapshot.ConversionsToWrite(m.csv, bundles) {
		if _, own := install.ConversionShape(c.Want); !m.answers && p.snapshot.CRDs[c.Definition].Converter != own {
			continue
		}

		other, err := p.converter(ctx, c.Definition)
		if err != nil {
			p.stop(m, err)

			return
		}

		if other != "" {
			m.refusal = fmt.Sprintf("clusterserviceversion %s brings another version of %s and converts it; one definition has room for "+
				"one converter, so install one of the two", other, c.Definition)
			p.checkBy(p.facts.Now.Add(checkClashEvery)) // What it brings is no API of this one, so nothing tells when it goes.

			continue
		}

		if err := p.Applier.Convert(ctx, p.as.Writes, c.Definition, p.snapshot.CRDs[c.Definition].UID, c.Want); err != nil {
			p.stop(m, err)

			return
		}
	}
}

func (p *state) writeWebhooks(ctx context.Context, m *member, bundles map[string][]byte) {
	hooks, err := p.snapshot.WebhooksToWrite(m.csv, p.servedBy(m), bundles)
	if err != nil {
		p.stop(m, err)
	}

	// Nothing new comes of a ClusterServiceVersion of which not all was written.
	if !m.answers {
		hooks.Write = slices.DeleteFunc(hooks.Write, func(obj *unstructured.Unstructured) bool {
			_, exists := p.snapshot.Webhooks[obj.GetName()]

			return !exists
		})
	}

	for _, obj := range hooks.Remove {
		p.fail(p.Applier.Remove(ctx, p.as.Removes, obj))
	}

	for _, obj := range hooks.Write {
		if _, err = p.Applier.Put(ctx, p.as.Writes, obj); err == nil {
			continue
		}

		p.stop(m, err)

		// Nobody is asked about a namespace that was taken from the group, whoever keeps the rest from being written.
		if live, is := hooks.Beyond[obj.GetName()]; is && apply.Classify(err) == apply.Refused {
			p.fail(p.Applier.Remove(ctx, p.as.Removes, install.LiveWebhooks(live)))
		}
	}
}

// servedBy are the targets about which an operator is asked: those in which it has its permissions. One about which it is asked
// already stays while some are late: nobody would check meanwhile what is written there.
func (p *state) servedBy(m *member) []string {
	asked := p.snapshot.AskedAbout(m.csv)

	return slices.DeleteFunc(slices.Clone(p.targets(m)), func(target string) bool {
		is := p.readiness(m, target)

		return is != install.Ready && target != corev1.NamespaceAll && (is != install.Late || !asked.Has(target))
	})
}

// limitWebhooks keeps the webhooks of a CSV of which not all was written in this reconcile to the targets of its group: it waits
// for something, is being replaced, or something was refused. Nothing new is made but a certificate that is about to end: the
// operator runs, and may do so for years.
func (p *state) limitWebhooks(ctx context.Context, m *member) {
	if p.Confined != nil {
		return // There are none.
	}

	// What a newer version has taken over, that one renews, and it says how definitions convert.
	bundles, own := map[string][]byte{}, map[string][]byte{}

	for _, s := range install.ServingOf(m.csv) {
		secret, err := p.Applier.Secret(ctx, p.as.Writes, m.csv.Namespace, s.Secret)
		if err != nil && apply.Classify(err) != apply.Refused {
			p.stop(m, err) // It is read again soon. What is removed meanwhile would not come back before all is installed.

			return
		}

		p.checkBy(p.facts.Now.Add(checkSecretsEvery))

		// Without a Secret, it is not known by which certificate it answers, and what reaches too far is removed.
		pair := p.pairOf(secret)
		if pair != nil && install.IsOwnedBy(secret, m.csv) {
			pair = p.renew(ctx, m, &s, pair)
			own[s.Deployment] = pair.Authorities
		}

		if pair != nil {
			bundles[s.Deployment] = pair.Authorities
		}
	}

	p.writeWebhooks(ctx, m, bundles)
	p.convert(ctx, m, own)
}

// renew is a pair of a Deployment that runs, or a new one that was written where that is about to end, and tells the pods of it.
func (p *state) renew(ctx context.Context, m *member, s *install.Serving, pair *servingcert.Pair) *servingcert.Pair {
	if pair.Check(s.Hosts, p.facts.Now) != nil {
		fresh, err := p.newCertificate(ctx, m, s, pair)
		if err != nil {
			p.stop(m, err)

			return pair
		}

		pair = fresh
	}

	p.checkAt(pair)

	for _, d := range p.snapshot.DeploymentsOf(m.csv) {
		told := install.Differing(d.Spec.Template.Annotations, install.Told(pair))
		if d.Name != s.Deployment || len(told) == 0 {
			continue
		}

		written, err := p.annotatePods(ctx, d, told)
		if err != nil {
			p.stop(m, err)

			continue
		}

		p.snapshot.Deployments[d.Name] = written
	}

	return pair
}

// forgetWebhooks removes the webhook configurations of CSVs that are gone or hold nothing.
func (p *state) forgetWebhooks(ctx context.Context, asked []string) {
	if p.as.Removes.IsNobody() {
		return // Nobody may, as with permissions.
	}

	for _, obj := range install.WebhooksToRemove(p.snapshot.Webhooks, asked) {
		err := p.Applier.Remove(ctx, p.as.Removes, obj)
		p.fail(err)

		if err == nil || apply.Classify(err) != apply.Refused {
			continue
		}

		// What is granted in the cluster leads to another try.
		words := install.Undeleted(obj.GetKind(), obj.GetName(), apply.Message(err))
		if m := p.owner(p.snapshot.Webhooks[obj.GetName()].Owner); m != nil {
			m.undeleted, m.lacks = append(m.undeleted, words), append(m.lacks, authority.Place{})
		} else {
			p.left = append(p.left, words)
		}
	}
}

// owner is the CSV with a hash; nil where there is none.
func (p *state) owner(hash string) *member {
	for i := range p.members {
		if m := &p.members[i]; compile.CSVOwner(m.csv.Namespace, m.csv.Name).Hash() == hash {
			return m
		}
	}

	return nil
}

// askedWebhooks are the names of the webhook configurations of CSVs that hold something. Those of one that cannot be read now
// stay as they are while they reach no further than its group.
func (p *state) askedWebhooks() []string {
	asked := make([]string, 0, len(p.found.unreadable)+len(p.members))

	for i := range p.found.unreadable {
		asked = append(asked, p.snapshot.WebhooksWithin(p.found.unreadable[i].owner())...)
	}

	for _, csv := range p.holding() {
		asked = append(asked, install.WebhookNames(csv)...)
	}

	return asked
}

// configs are what the Subscriptions of a namespace say about the Deployments of a CSV, by its name.
func (r *Reconciler) configs(ctx context.Context, found *resources) (map[string]*install.Config, error) {
	list := scope.NewOLMList(olm.SubscriptionKind)
	if err := r.Cache.List(ctx, list, client.InNamespace(found.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Subscriptions: %w", err)
	}

	leftOut, err := r.Subscriptions.Fit(ctx, r.Live, found.namespace, changes.Objects(list.Items))
	if err != nil {
		return nil, fmt.Errorf("reading Subscriptions: %w", err)
	}

	out := map[string]*install.Config{}

	for i := range list.Items {
		readConfig := install.ReadConfig
		if _, is := leftOut[list.Items[i].GetUID()]; is {
			readConfig = install.LeftOutConfig
		}

		names, config := readConfig(&list.Items[i])
		for _, name := range names {
			// Of several Subscriptions of one operator the first by name counts, as in every list.
			if before := out[name]; found.isOf(config, name) && (before == nil || config.Subscription < before.Subscription) {
				out[name] = config
			}
		}
	}

	return out, nil
}
