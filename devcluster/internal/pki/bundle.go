package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Bundle is everything a cluster needs to trust itself.
//
// The two authorities are separate on purpose, as they are in a real cluster:
// a client of the API server must not be able to claim to be the aggregation
// layer. Nobody talks to etcd but by its socket.
type Bundle struct {
	// CA is the authority of the API server and its clients.
	CA Pair
	// APIServer is the serving certificate of the API server.
	APIServer Pair
	// Admin, ControllerManager, Scheduler and Kwok are client certificates.
	Admin             Pair
	ControllerManager Pair
	Scheduler         Pair
	Kwok              Pair

	// FrontProxyCA signs FrontProxy, by which the API server proves to
	// aggregated API servers that it speaks for somebody else.
	FrontProxyCA Pair
	FrontProxy   Pair

	// ServiceAccountKey signs service account tokens.
	ServiceAccountKey []byte
}

// loopback is what every server of the cluster is reached by.
func loopback() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} }

// New makes a bundle. The service address is the cluster IP of the service
// named kubernetes, which pods would reach the API server by.
func New(serviceAddress net.IP) (*Bundle, error) {
	b := &Bundle{}
	for _, step := range []func() error{
		func() error { return b.makeCluster(serviceAddress) },
		b.makeFrontProxy,
		b.makeServiceAccountKey,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *Bundle) makeCluster(serviceAddress net.IP) error {
	ca, err := newAuthority("kubernetes-ca")
	if err != nil {
		return err
	}
	b.CA = ca.Pair
	names := []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
	}
	if b.APIServer, err = ca.server("kube-apiserver", names, append(loopback(), serviceAddress)); err != nil {
		return err
	}
	if b.Admin, err = ca.client("kubernetes-admin", "system:masters"); err != nil {
		return err
	}
	if b.ControllerManager, err = ca.client("system:kube-controller-manager"); err != nil {
		return err
	}
	if b.Scheduler, err = ca.client("system:kube-scheduler"); err != nil {
		return err
	}
	// kwok plays the kubelets of all nodes, more than any one role allows.
	b.Kwok, err = ca.client("kwok", "system:masters")
	return err
}

func (b *Bundle) makeFrontProxy() error {
	ca, err := newAuthority("front-proxy-ca")
	if err != nil {
		return err
	}
	b.FrontProxyCA = ca.Pair
	b.FrontProxy, err = ca.client("front-proxy-client")
	return err
}

func (b *Bundle) makeServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the service account key: %w", err)
	}
	b.ServiceAccountKey, err = encodeKey(key)
	return err
}

// Write stores the bundle in a folder, under the names which the functions
// CertificateFile and KeyFile return.
func (b *Bundle) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder for certificates: %w", err)
	}
	for name, pair := range map[string]Pair{
		"ca": b.CA, "apiserver": b.APIServer,
		"front-proxy-ca": b.FrontProxyCA, "front-proxy": b.FrontProxy,
		"service-account": {Key: b.ServiceAccountKey},
	} {
		if err := write(CertificateFile(folder, name), pair.Certificate); err != nil {
			return err
		}
		if err := write(KeyFile(folder, name), pair.Key); err != nil {
			return err
		}
	}
	return nil
}

// CertificateFile is the file of a certificate in a folder written by Write.
func CertificateFile(folder, name string) string { return filepath.Join(folder, name+".crt") }

// KeyFile is the file of a private key in a folder written by Write.
func KeyFile(folder, name string) string { return filepath.Join(folder, name+".key") }

func write(file string, content []byte) error {
	if len(content) == 0 {
		return nil
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("writing a certificate or key: %w", err)
	}
	return nil
}
