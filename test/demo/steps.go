package main

import (
	"context"
	"fmt"
	"strconv"
)

// install is step 1 of the use case: the scope has only its own namespace.
func (p *play) install(ctx context.Context) error {
	if err := p.apply(ctx, "1-scope.yaml", true); err != nil {
		return err
	}

	if err := p.expectList(ctx, ops); err != nil {
		return err
	}

	p.screen.sayf("  Two operators, secretman and certman: each is a Deployment with the label intent=projected that\n" +
		"  reads the ConfigMap, with a ServiceAccount, a Role and a RoleBinding in this namespace only.")

	if err := p.apply(ctx, "1-operators.yaml", false); err != nil {
		return err
	}

	p.rollouts = 1
	for _, o := range []operator{secretman, certman} {
		look := func(ctx context.Context) (string, error) { return p.world.rollouts(ctx, o) }
		if err := p.expect(ctx, string(o)+" runs", strconv.Itoa(p.rollouts), look); err != nil {
			return err
		}
	}

	return p.notePods(ctx)
}

// createMember is step 2: so far the operators may do nothing in the new namespace.
func (p *play) createMember(ctx context.Context) error {
	if _, err := p.kubectl.quietly(ctx, "create namespace cloudpak1"); err != nil {
		return err
	}

	p.screen.sayf("  SECRETMAN=%s\n  CERTMAN=%s", secretman.user(), certman.user())

	return p.expectAnswers(ctx,
		answer{"auth can-i create secrets -n cloudpak1 --as=$SECRETMAN", "no"},
		answer{"get certificates -n cloudpak1 --as=$CERTMAN", "Forbidden"})
}

// addMember is step 3.
func (p *play) addMember(ctx context.Context) error {
	if err := p.apply(ctx, "3-scope.yaml", true); err != nil {
		return err
	}

	list := "cloudpak1," + ops
	if err := p.expectList(ctx, list); err != nil {
		return err
	}

	if err := p.expectRestart(ctx); err != nil {
		return err
	}

	what := "the permissions were there before the list named cloudpak1, and the list before the restarts"
	if err := p.expectOrder(ctx, what, granted("cloudpak1"), listed(list), restarted); err != nil {
		return err
	}

	p.screen.block(p.journal.story(p.mark))

	if err := p.expectAnswers(ctx,
		answer{"auth can-i create secrets -n cloudpak1 --as=$SECRETMAN", "yes"},
		answer{"auth can-i watch certificates -n cloudpak1 --as=$CERTMAN", "yes"}); err != nil {
		return err
	}

	p.screen.sayf("  As much as at home, and no more:")

	if err := p.expectAnswers(ctx,
		answer{"auth can-i delete secrets -n cloudpak1 --as=$SECRETMAN", "no"},
		answer{"auth can-i create secrets -n cloudpak1 --as=$CERTMAN", "no"},
		answer{"auth can-i create secrets -n default --as=$SECRETMAN", "no"}); err != nil {
		return err
	}

	return p.showReport(ctx)
}

// showReport shows what people see of step 3.
func (p *play) showReport(ctx context.Context) error {
	const served = "True Reconciled, 2 members are served"

	if err := p.expect(ctx, "the status says: Ready "+served, served, p.world.ready); err != nil {
		return err
	}

	for reason, name := range map[string]string{"NamespaceAdded": "cloudpak1", "WorkloadRestarted": "Deployment"} {
		look := func(ctx context.Context) (string, error) { return p.world.told(ctx, reason, name) }
		if _, err := p.await(ctx, "event "+reason+" about "+name, told, look); err != nil {
			return err
		}
	}

	p.screen.seenf(0, "events tell of the member and of the restarts")

	for _, line := range []string{
		"get nss -n " + ops,
		"get events -n " + ops + " --field-selector involvedObject.kind=NamespaceScope \\\n" +
			"      --no-headers -o custom-columns=REASON:reason,MESSAGE:message",
	} {
		if err := p.kubectl.show(ctx, line); err != nil {
			return err
		}
	}

	return nil
}

// work is step 4. No container runs on this cluster, so kubectl does what the operators would, with their rights.
func (p *play) work(ctx context.Context) error {
	if err := p.apply(ctx, "4-certificate.yaml", false); err != nil {
		return err
	}

	p.screen.sayf("  What certman does on seeing it, and then secretman:")

	return p.expectAnswers(ctx,
		answer{"get certificates -n cloudpak1 -o name --as=$CERTMAN", "certificate.certman.example.com/portal"},
		answer{"create secret generic portal-tls -n cloudpak1 --as=$SECRETMAN", "secret/portal-tls created"})
}

// editSource changes a Role in the operators' namespace.
func (p *play) editSource(ctx context.Context) error {
	if err := p.apply(ctx, "5-role.yaml", false); err != nil {
		return err
	}

	return p.expectAnswers(ctx, answer{"auth can-i list services -n cloudpak1 --as=$SECRETMAN", "yes"})
}

// tamper changes and deletes what Ambit projected.
func (p *play) tamper(ctx context.Context) error {
	role, err := p.world.projectedRole(ctx, secretman, "cloudpak1")
	if err != nil {
		return err
	}

	rules, err := p.world.rules(ctx, ops, string(secretman))
	if err != nil {
		return err
	}

	err = p.kubectl.show(ctx, "patch role "+role+" -n cloudpak1 --type=json"+
		` -p '[{"op": "add", "path": "/rules/0/verbs/-", "value": "delete"}]'`)
	if err != nil {
		return err
	}

	look := func(ctx context.Context) (string, error) { return p.world.rules(ctx, "cloudpak1", role) }
	if err := p.expect(ctx, "the copy is what its source is: "+rules, rules, look); err != nil {
		return err
	}

	if err := p.expectAnswers(ctx, answer{"auth can-i delete secrets -n cloudpak1 --as=$SECRETMAN", "no"}); err != nil {
		return err
	}

	if err := p.kubectl.show(ctx, "delete rolebindings -n cloudpak1 -l app.kubernetes.io/managed-by=ambit"); err != nil {
		return err
	}

	return p.expectAnswers(ctx, answer{"auth can-i create secrets -n cloudpak1 --as=$SECRETMAN", "yes"})
}

// swapMembers adds one member and removes another in one change.
func (p *play) swapMembers(ctx context.Context) error {
	if _, err := p.kubectl.quietly(ctx, "create namespace cloudpak2"); err != nil {
		return err
	}

	if err := p.apply(ctx, "7-scope.yaml", false); err != nil {
		return err
	}

	list := "cloudpak2," + ops
	if err := p.expectList(ctx, list); err != nil {
		return err
	}

	if err := p.expectRestart(ctx); err != nil {
		return err
	}

	what := "permissions before the list names cloudpak2, and the list forgets cloudpak1 before its permissions go"
	if err := p.expectOrder(ctx, what, granted("cloudpak2"), listed(list), revoked("cloudpak1")); err != nil {
		return err
	}

	p.screen.block(p.journal.story(p.mark))

	return p.expectAnswers(ctx,
		answer{"auth can-i create secrets -n cloudpak2 --as=$SECRETMAN", "yes"},
		answer{"auth can-i create secrets -n cloudpak1 --as=$SECRETMAN", "no"})
}

// remove deletes the scope.
func (p *play) remove(ctx context.Context) error {
	if err := p.kubectl.show(ctx, fmt.Sprintf("delete nss %s -n %s", scopeName, ops)); err != nil {
		return err
	}

	what := "nothing is left behind: no Role, no RoleBinding, no ConfigMap"
	if err := p.expect(ctx, what, "nothing", p.world.leftovers); err != nil {
		return err
	}

	return p.expectAnswers(ctx,
		answer{"auth can-i create secrets -n cloudpak2 --as=$SECRETMAN", "no"},
		answer{"auth can-i create secrets -n " + ops + " --as=$SECRETMAN", "yes"})
}
