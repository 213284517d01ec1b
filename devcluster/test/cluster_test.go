package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestCluster uses one cluster for everything that does not change how it
// runs; a start takes seconds.
func TestCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	audit := filepath.Join(t.TempDir(), "audit.log")
	up(t, dir, "--audit-log", audit)

	t.Run("nodes are ready", func(t *testing.T) {
		nodes := mustKubectl(t, dir, "get", "nodes", "--no-headers")
		if strings.Count(nodes, " Ready ") != 2 {
			t.Errorf("the nodes are:\n%s", nodes)
		}
	})
	t.Run("a deployment becomes available", func(t *testing.T) { deploy(t, dir) })
	t.Run("a pod is evicted within its budget", func(t *testing.T) { evict(t, dir) })
	t.Run("a pod that nobody deleted stays", func(t *testing.T) { keep(t, dir) })
	t.Run("a job completes", func(t *testing.T) {
		mustKubectl(t, dir, "create", "job", "once", "--image=busybox")
		mustKubectl(t, dir, "wait", "--for=condition=Complete", "job/once", "--timeout=60s")
	})
	t.Run("tokens are issued", func(t *testing.T) {
		if token := mustKubectl(t, dir, "create", "token", "default"); strings.Count(token, ".") != 2 {
			t.Errorf("the token is %q", token)
		}
	})
	t.Run("requests are audited", func(t *testing.T) { checkAudit(t, dir, audit) })
	t.Run("services lead where the socket leads", func(t *testing.T) { leadNowhere(t, dir) })
	t.Run("it is put back", func(t *testing.T) { putBack(t, dir) })
	t.Run("components restart", func(t *testing.T) { restartAll(t, dir) })
}

func deploy(t *testing.T, dir string) {
	t.Helper()
	mustKubectl(t, dir, "create", "deployment", "web", "--image=nginx", "--replicas=3")
	mustKubectl(t, dir, "wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
	mustKubectl(t, dir, "set", "image", "deployment/web", "nginx=nginx:2")
	mustKubectl(t, dir, "rollout", "status", "deployment/web", "--timeout=60s")
}

// evict evicts pods until the budget is used up.
func evict(t *testing.T, dir string) {
	t.Helper()
	mustKubectl(t, dir, "create", "pdb", "web", "--selector=app=web", "--min-available=2")
	eventually(t, "the budget is computed", func() bool {
		return mustKubectl(t, dir, "get", "pdb", "web", "-o", "jsonpath={.status.disruptionsAllowed}") == "1"
	})
	pod := mustKubectl(t, dir, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
	node := mustKubectl(t, dir, "get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
	mustKubectl(t, dir, "drain", node, "--timeout=60s")
	mustKubectl(t, dir, "uncordon", node)
	if got := kubectl(t, dir, "get", "pod", pod); got.code == 0 || !strings.Contains(got.stderr, "not found") {
		t.Errorf("the evicted pod is still there: %s%s", got.stdout, got.stderr)
	}
}

// keep holds that kwok ends no pod that got the name of one which it ended.
func keep(t *testing.T, dir string) {
	t.Helper()
	mustKubectl(t, dir, "run", "again", "--image=nginx")
	mustKubectl(t, dir, "wait", "--for=condition=Ready", "pod/again", "--timeout=60s")
	eventually(t, "it may not be ended", func() bool {
		got := kubectl(t, dir, "delete", "pod", "again", "--now", "--dry-run=server", "--as=kwok", "--as-group=system:masters")
		return strings.Contains(got.stderr, "nobody has deleted the pod")
	})
	mustKubectl(t, dir, "delete", "pod", "again", "--timeout=60s")
}

func checkAudit(t *testing.T, dir, audit string) {
	t.Helper()
	mustKubectl(t, dir, "create", "configmap", "seen")
	found := false
	for line := range strings.Lines(read(t, audit)) {
		var entry struct {
			Level     string `json:"level"`
			Stage     string `json:"stage"`
			Verb      string `json:"verb"`
			ObjectRef struct {
				Resource string `json:"resource"`
				Name     string `json:"name"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("a line is not JSON: %v\n%s", err, line)
		}
		if entry.Level != "Metadata" || entry.Stage != "ResponseComplete" {
			t.Fatalf("want only metadata of answered requests, got %s", line)
		}
		found = found || entry.Verb == "create" && entry.ObjectRef.Resource == "configmaps" && entry.ObjectRef.Name == "seen"
	}
	if !found {
		t.Error("the request just made is not in the audit log")
	}
}

func restartAll(t *testing.T, dir string) {
	t.Helper()
	before := status(t, dir)
	for _, restart := range [][2]string{
		{"kube-apiserver", "KILL"}, {"kube-apiserver", "TERM"}, {"etcd", "KILL"},
		{"kwok", "TERM"}, {"kube-scheduler", "KILL"}, {"kube-controller-manager", "TERM"},
	} {
		succeed(t, "devcluster", "restart", "--dir", dir, "--signal", restart[1], restart[0])
	}
	after := status(t, dir)
	if after.Server != before.Server {
		t.Errorf("the server moved from %s to %s", before.Server, after.Server)
	}
	for i, c := range after.Components {
		if c.Restarts == 0 || c.PID == before.Components[i].PID {
			t.Errorf("%s was not restarted: %+v", c.Name, c)
		}
	}
	if got := mustKubectl(t, dir, "get", "configmap", "seen", "-o", "name"); got != "configmap/seen\n" {
		t.Errorf("what was stored before is gone: %q", got)
	}
	name := fmt.Sprintf("after-%d", after.PID)
	mustKubectl(t, dir, "create", "deployment", name, "--image=nginx")
	mustKubectl(t, dir, "wait", "--for=condition=Available", "deployment/"+name, "--timeout=60s")
}
