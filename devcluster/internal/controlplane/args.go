package controlplane

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

const (
	serviceRange = "10.96.0.0/16"
	podRange     = "10.244.0.0/16"
	issuer       = "https://kubernetes.default.svc.cluster.local"

	// advertised is what the API server lists as the endpoint of the service
	// named kubernetes. Kubernetes refuses loopback addresses there, and the
	// address of this machine is nobody's business, so it is one from the
	// range reserved for documentation. Nothing listens on it; there are no
	// pods that could miss it.
	advertised = "192.0.2.1"
)

// ServiceAddress is the cluster IP of the service named kubernetes.
func ServiceAddress() net.IP { return net.IPv4(10, 96, 0, 1) }

func (p Plan) etcd() []string {
	// What etcd tells others needs the form of a host with a port. The socket
	// for peers is made under that name, in the folder for data.
	const peers, clients = "unix://peers:0", "unix://clients:0"
	return []string{
		"--name=devcluster",
		"--data-dir=" + filepath.Join(p.Dir.Data(), "etcd"),
		// With a port and certificates, etcd works a third more.
		"--listen-client-urls=unix://" + p.EtcdSocket,
		"--advertise-client-urls=" + clients,
		// A cluster of one has no peers, yet etcd insists on listening for
		// them.
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=devcluster=" + peers,
		// A cluster of one elects itself; with the defaults it waits a second
		// for the others first. More heartbeats keep an idle etcd busy. In
		// milliseconds.
		"--heartbeat-interval=50",
		"--election-timeout=250",
		// The data need not survive a crash of the machine, only one of etcd.
		"--unsafe-no-fsync=true",
		"--quota-backend-bytes=4294967296",
		"--snapshot-count=100000",
		"--log-level=warn",
	}
}

func (p Plan) apiServer() []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.Port),
		"--advertise-address=" + advertised,
		"--external-hostname=127.0.0.1",
		"--tls-cert-file=" + p.certificate("apiserver"),
		"--tls-private-key-file=" + p.key("apiserver"),
		"--client-ca-file=" + p.certificate("ca"),

		"--etcd-servers=unix://" + p.EtcdSocket,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + p.key("service-account"),
		"--service-account-signing-key-file=" + p.key("service-account"),

		"--egress-selector-config-file=" + p.config(egress),

		"--requestheader-client-ca-file=" + p.certificate("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.certificate("front-proxy"),
		"--proxy-client-key-file=" + p.key("front-proxy"),

		// Tests open a thousand connections at once; the default limits would
		// turn them away.
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
		// The watches of a test's clients are streams of one connection. At the
		// limit, a server in Go that has not noted yet that an answer is written
		// refuses the request that follows it with PROTOCOL_ERROR
		// (processHeaders in x/net/http2).
		"--http2-max-streams-per-connection=1000",
		"--shutdown-delay-duration=0",
		// An orderly end tells the clients which watch something to go. The
		// default is to wait a minute until they go by themselves.
		"--shutdown-watch-termination-grace-period=1s",
	}
	if p.AuditLog != "" {
		args = append(args,
			"--audit-policy-file="+p.config(auditPolicy),
			"--audit-log-path="+p.AuditLog,
			// An entry is in the file before its request is answered, or the
			// request fails: readers need not wait, and a kill loses nothing.
			"--audit-log-mode=blocking-strict",
			// In megabytes. The default would move the file away while
			// somebody reads it.
			"--audit-log-maxsize=1000000",
		)
	}
	return args
}

func (p Plan) controllerManager() []string {
	return append(client(p.config(ControllerManager+".kubeconfig")),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+p.key("service-account"),
		"--root-ca-file="+p.certificate("ca"),
		"--cluster-signing-cert-file="+p.certificate("ca"),
		"--cluster-signing-key-file="+p.key("ca"),
		"--cluster-name=devcluster",
		"--service-cluster-ip-range="+serviceRange,
	)
}

func (p Plan) scheduler() []string {
	return client(p.config(Scheduler + ".kubeconfig"))
}

// client returns what the two clients from the Kubernetes project have in
// common: no port, no election among one, and rate limits that tests which
// make thousands of objects do not run into.
func client(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
}

func (p Plan) kwok() []string {
	return []string{
		"--kubeconfig=" + p.config(Kwok+".kubeconfig"),
		"--config=" + p.config(kwokStages),
		"--manage-all-nodes=true",
		"--cidr=" + podRange,
		fmt.Sprintf("--node-lease-duration-seconds=%d", nodeLeaseSeconds),
	}
}
