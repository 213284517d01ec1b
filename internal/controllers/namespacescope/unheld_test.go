package namespacescope

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestOthersWaitForUnheldScopes: what has to be revoked in a namespace waits for scopes without a finalizer no longer than for
// anything else, however many of them take turns. Capital letters are scopes that were served before; ~ says that somebody has
// just changed a scope.
func TestOthersWaitForUnheldScopes(t *testing.T) {
	t.Parallel()

	const waits = true

	type step struct {
		second float64
		unheld string
		waits  bool
	}

	for name, steps := range map[string][]step{
		"all are held":                  {{0, "", !waits}},
		"one that never served":         {{0, "a", !waits}, {1, "a", !waits}},
		"one that is always changed":    {{0, "~a", waits}, {7, "~a", waits}, {8, "~a", !waits}, {9, "~a", !waits}},
		"changed ones come and go":      {{0, "~a", waits}, {4, "a", !waits}, {5, "~b", waits}, {8, "~c", waits}, {13, "~d", !waits}},
		"one that served":               {{0, "A", waits}, {3, "A", waits}, {7.9, "A", waits}, {8, "A", !waits}, {9, "A", !waits}},
		"it is held in between":         {{0, "A", waits}, {7, "", !waits}, {8, "A", waits}, {15, "A", waits}, {16, "A", !waits}},
		"tries are rare":                {{0, "A", waits}, {60, "A", !waits}},
		"another one comes to it":       {{0, "A", waits}, {7, "A B", waits}, {8, "A B", !waits}, {9, "A B", !waits}},
		"they take turns":               {{0, "A", waits}, {4, "B", waits}, {7, "A", waits}, {8, "B", !waits}, {9, "B", !waits}},
		"another one comes later":       {{0, "A", waits}, {8, "A", !waits}, {9, "A B", waits}, {16, "B", waits}, {17, "A B", !waits}},
		"it was held after it was late": {{0, "A", waits}, {8, "A", !waits}, {9, "", !waits}, {10, "A", waits}, {18, "A", !waits}},
	} {
		var (
			u     unheld
			began = time.Now()
		)

		for i, s := range steps {
			var scopes []resource

			for uid := range strings.FieldsSeq(s.unheld) {
				uid, contested := strings.CutPrefix(uid, "~")

				nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
				if uid != strings.ToLower(uid) {
					nss.Status.ObservedGeneration = 1
				}

				scopes = append(scopes, resource{Object: nss, status: &nss.Status, contested: contested})
			}

			now := began.Add(time.Duration(s.second * float64(time.Second)))
			if until := u.until("ops", scopes, now); until.After(now) != s.waits {
				t.Errorf("%s, step %d: they wait: %t, want %t", name, i, !s.waits, s.waits)
			}
		}

		u.until("ops", nil, began.Add(time.Hour))

		if len(u.of) > 0 {
			t.Errorf("%s: what is held is remembered: %v", name, u.of)
		}
	}
}
