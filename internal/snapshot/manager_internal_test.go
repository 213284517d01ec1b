package snapshot

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestArgumentsOf: what runs beside the manager says nothing of how the manager runs.
func TestArgumentsOf(t *testing.T) {
	t.Parallel()

	beside := corev1.Container{Name: "proxy", Args: []string{"--namespaces=evil"}}
	manager := corev1.Container{Name: "manager", Command: []string{"/ambit"}, Args: []string{"manager", "--namespaces=a"}}
	renamed := manager
	renamed.Name = "ambit"

	for name, containers := range map[string][]corev1.Container{
		"alone": {manager}, "first": {manager, beside}, "last": {beside, manager}, "renamed": {renamed, beside},
	} {
		got := argumentsOf(&corev1.PodSpec{Containers: containers})
		if !slices.Equal(got, []string{"/ambit", "manager", "--namespaces=a"}) {
			t.Errorf("%s: got %q", name, got)
		}
	}

	if got := argumentsOf(&corev1.PodSpec{}); len(got) > 0 {
		t.Errorf("got %q of no container", got)
	}
}
