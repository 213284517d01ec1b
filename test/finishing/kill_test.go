package finishing_test

import (
	"testing"
	"time"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/younger"
)

// TestKilledWhileAMemberFinishes holds that an Ambit that begins anew goes on: the namespace keeps what it has, the time goes on
// from where it was, and it ends when the operator has finished.
func TestKilledWhileAMemberFinishes(t *testing.T) {
	w := newWorld(beds.Alone(t, "cluster"))
	w.serve(operatorv1.NamespaceScopeSpec{})

	one := w.waiting(w.member, "one")
	w.leave()

	before := w.finishing(w.member)
	// A time that began anew would be another one.
	younger.ThanTime(w.World, w.ops, before.Since)
	w.Reborn("namespacescope")

	// Something changes, so that a status is written after the new one began.
	w.Change(w.scope, func() { w.scope.Spec.NamespaceMembers = nil })
	w.copiesGo(w.other, soon)

	if after := w.finishing(w.member, "widgets."+w.group+" one"); !after.Since.Equal(&before.Since) {
		t.Errorf("it finishes since %s, and since %s before Ambit began anew", after.Since, before.Since)
	}

	if !w.mayWork(w.member) {
		t.Fatal("the operator may not finish")
	}

	if err := w.finish(one); err != nil {
		t.Fatal(err)
	}

	w.copiesGo(w.member, soon)
	w.listed(w.member, false)
}

// TestKilledWhileADeletedMemberFinishes holds that copies which Ambit held do not keep their namespace when Ambit died meanwhile:
// it lets go of them when it begins anew.
func TestKilledWhileADeletedMemberFinishes(t *testing.T) {
	w := newWorld(beds.Alone(t, "cluster"))
	w.serve(operatorv1.NamespaceScopeSpec{})

	alive := w.widget(w.member, "alive", finalizer)
	w.Make(alive)
	w.end(w.member)
	w.finishing(w.member, "widgets."+w.group+" alive")

	if err := w.Manager.Kill(); err != nil {
		t.Fatal(err)
	}

	w.Eventually("Kubernetes has begun to delete", func() error { return w.swept(w.member) })

	if err := w.finish(alive); err != nil {
		t.Errorf("the operator may not finish while Ambit is away: %v", err)
	}

	if w.copies(w.member) == 0 {
		t.Error("the copies went although they were held")
	}

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	w.copiesGo(w.member, soon)
	w.ends(w.member, 90*time.Second)
}
