package snapshot

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRemaining(t *testing.T) {
	t.Parallel()

	called := func(name string, owner ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "ops", Name: name}
		if len(owner) > 0 {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: owner[0], Name: owner[1], Controller: new(true)}}
		}

		return m
	}
	ofDeployment := called("op-7d9-x", "ReplicaSet", "op-7d9")
	ofDeployment.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "7d9"}
	everything := []client.Object{
		&corev1.Pod{ObjectMeta: ofDeployment},
		&corev1.Pod{ObjectMeta: called("nightly-1-x", "Job", "nightly-1")},
		&corev1.Pod{ObjectMeta: called("bare")},
		&appsv1.Deployment{ObjectMeta: called("op")},
		&batchv1.CronJob{ObjectMeta: called("nightly")},
		&batchv1.Job{ObjectMeta: called("nightly-1", "CronJob", "nightly")},
		&rbacv1.Role{ObjectMeta: called("op")},
		&rbacv1.RoleBinding{ObjectMeta: called("op")},
	}

	for name, tc := range map[string]struct {
		reason string
		gone   client.Object
		left   []string
	}{
		"role": {
			"only what is of that kind and name goes", &rbacv1.Role{ObjectMeta: called("op")},
			[]string{"op-7d9-x", "nightly-1-x", "bare", "op", "nightly", "nightly-1", "op"},
		},
		"elsewhere": {
			"and only in that namespace", &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "op"}},
			[]string{"op-7d9-x", "nightly-1-x", "bare", "op", "nightly", "nightly-1", "op", "op"},
		},
		"deployment": {
			"a workload takes its pods along", &appsv1.Deployment{ObjectMeta: called("op")},
			[]string{"nightly-1-x", "bare", "nightly", "nightly-1", "op", "op"},
		},
		"cronjob": {
			"through its jobs, too", &batchv1.CronJob{ObjectMeta: called("nightly")},
			[]string{"op-7d9-x", "bare", "op", "op", "op"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var left []string
			for _, obj := range remaining(everything, map[identity]struct{}{identityOf(tc.gone): {}}) {
				left = append(left, obj.GetName())
			}

			if !slices.Equal(left, tc.left) {
				t.Errorf("%s: left is %v", tc.reason, left)
			}
		})
	}
}
