package apply_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
)

// TestCreateOnce: an object is created, and one that is there stays as it is. Nobody creates nothing.
func TestCreateOnce(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	wanted := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.member, Name: "once"}, Data: map[string]string{"key": value},
		}
	}

	if result, err := b.applier.CreateOnce(t.Context(), apply.Identity{}, wanted("a")); !errors.Is(err, apply.ErrNoIdentity) ||
		result != apply.Failed {
		t.Errorf("nobody creates it: %s, %v", result, err)
	}

	for _, tc := range []struct {
		value string
		want  apply.Result
	}{{"a", apply.Created}, {"b", apply.Unchanged}} {
		result, err := b.applier.CreateOnce(t.Context(), apply.Own(), wanted(tc.value))
		if err != nil || result != tc.want {
			t.Errorf("%q is %s, not %s: %v", tc.value, result, tc.want, err)
		}
	}

	live := wanted("")
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.Data["key"] != "a" ||
		!apply.IsMade(live) {
		t.Errorf("it is %v: %v", live, err)
	}

	elsewhere := wanted("a")
	elsewhere.Namespace = "nowhere"

	result, err := b.applier.CreateOnce(t.Context(), apply.Own(), elsewhere)
	if !apierrors.IsNotFound(err) || result != apply.Failed {
		t.Errorf("in a namespace that is missing: %s, %v", result, err)
	}
}

// TestReplaceIsOfWhatWasRead: of two who write at once one is refused.
func TestReplaceIsOfWhatWasRead(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	one := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.member, Name: "names"}}

	if err := b.client.Create(t.Context(), one); err != nil {
		t.Fatal(err)
	}

	two := one.DeepCopy()
	one.Data, two.Data = map[string][]byte{"key": []byte("one")}, map[string][]byte{"key": []byte("two")}

	if err := b.applier.Replace(t.Context(), apply.Own(), one); err != nil {
		t.Errorf("the first: %v", err)
	}

	if err := b.applier.Replace(t.Context(), apply.Own(), two); !apierrors.IsConflict(err) {
		t.Errorf("the second, which was read before: %v", err)
	}

	if err := b.applier.Replace(t.Context(), apply.Identity{}, one); !errors.Is(err, apply.ErrNoIdentity) {
		t.Errorf("nobody writes it: %v", err)
	}
}
