package injection_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func TestRefusal(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		in     scope.WorkloadInjection
		want   bool
	}{
		"variable":     {"the usual one", scope.WorkloadInjection{Variable: "WATCH_NAMESPACE"}, false},
		"another":      {"the name says what it holds", scope.WorkloadInjection{Variable: "PGO_TARGET_NAMESPACES"}, false},
		"folder":       {"so does this one", scope.WorkloadInjection{MountPath: "/etc/ambit"}, false},
		"deep":         {"wherever it is", scope.WorkloadInjection{MountPath: "/opt/operator/watch-list"}, false},
		"both":         {"nobody is harmed by both", scope.WorkloadInjection{Variable: "NAMESPACES", MountPath: "/ambit"}, false},
		"none":         {"nothing is harmless", scope.WorkloadInjection{}, false},
		"arguments":    {"it does as told", scope.WorkloadInjection{Variable: "NAMESPACES", Arguments: []string{"x"}}, true},
		"library":      {"it is loaded", scope.WorkloadInjection{Variable: "LD_PRELOAD"}, true},
		"command":      {"a namespace may be called like a program", scope.WorkloadInjection{Variable: "EDITOR"}, true},
		"service":      {"it is where the API server is", scope.WorkloadInjection{Variable: "KUBERNETES_SERVICE_HOST"}, true},
		"lower case":   {"variables are told apart by it", scope.WorkloadInjection{Variable: "namespace"}, true},
		"folder alone": {"the image has something there", scope.WorkloadInjection{MountPath: "/etc"}, true},
		"parent":       {"only the folder's own name counts", scope.WorkloadInjection{MountPath: "/etc/ambit/certs"}, true},
		"dots":         {"one name for one folder", scope.WorkloadInjection{MountPath: "/usr/../etc/ambit"}, true},
		"slashes":      {"likewise", scope.WorkloadInjection{MountPath: "/etc//ambit"}, true},
		"relative":     {"it depends on the image", scope.WorkloadInjection{MountPath: "ambit"}, true},
		"token":        {"the kubelet puts it there", scope.WorkloadInjection{MountPath: "/var/run/secrets/namespace"}, true},
		"kernel":       {"nobody mounts there", scope.WorkloadInjection{MountPath: "/proc/namespace"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := injection.Refusal(&tc.in); got != "" != tc.want {
				t.Errorf("%s: %q", tc.reason, got)
			}
		})
	}
}

// TestConfinedTakesNothing has what is there already, or may be, each in the way.
func TestConfinedTakesNothing(t *testing.T) {
	t.Parallel()

	mounted := func(path, volume string) corev1.PodSpec {
		return corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: path}}}},
			Volumes:    []corev1.Volume{{Name: volume}},
		}
	}
	with := func(v corev1.EnvVar, from ...string) corev1.PodSpec {
		c := corev1.Container{Name: "a"}
		if v.Name != "" {
			c.Env = []corev1.EnvVar{v}
		}

		for _, prefix := range from {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{Prefix: prefix})
		}

		return corev1.PodSpec{InitContainers: []corev1.Container{c}}
	}
	field := func(path string) corev1.EnvVar {
		return corev1.EnvVar{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: path},
		}}
	}

	ofOLM := field("metadata.annotations['olm.targetNamespaces']")

	for name, tc := range map[string]struct {
		reason  string
		is      corev1.PodSpec
		overOLM bool
		free    bool
	}{
		"nothing":       {reason: "it is free", is: with(corev1.EnvVar{}), free: true},
		"literal":       {reason: "it is set", is: with(corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: "a"})},
		"empty":         {reason: "it is set, to nothing", is: with(corev1.EnvVar{Name: "WATCH_NAMESPACE"})},
		"field":         {reason: "it is set", is: with(field("metadata.namespace")), overOLM: true},
		"OLM's":         {reason: "it is set", is: with(ofOLM)},
		"OLM's, by OLM": {reason: "the list stands for that", is: with(ofOLM), overOLM: true, free: true},
		"all of a map":  {reason: "it may be in it", is: with(corev1.EnvVar{}, "OTHER_", "")},
		"a prefix":      {reason: "it may be in it", is: with(corev1.EnvVar{}, "WATCH_")},
		"others":        {reason: "it cannot be in it", is: with(corev1.EnvVar{}, "OTHER_"), free: true},
		"beside":        {reason: "names that begin alike are two folders", is: mounted("/etc/ambit-data", "x"), free: true},
		"same":          {reason: "it is mounted", is: mounted("/etc/ambit/", "x")},
		"other writing": {reason: "the same, as the runtime sees it", is: mounted("/etc/./x/../ambit", "x")},
		"above":         {reason: "it would be made in that volume", is: mounted("/etc", "x")},
		"root":          {reason: "likewise", is: mounted("/", "x")},
		"below":         {reason: "it would be hidden", is: mounted("/etc/ambit/tls", "x")},
		"volume":        {reason: "the volume is another one", is: mounted("/data", injection.Volume)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			want := injection.Want{
				ConfigMap: "namespace-scope", Confined: true, OverOLM: tc.overOLM,
				WorkloadInjection: scope.WorkloadInjection{Variable: "WATCH_NAMESPACE", MountPath: "/etc/ambit"},
			}

			is := read.PodSpec(&tc.is)
			if got := want.Conflicts(&is); len(got) == 0 != tc.free {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}
