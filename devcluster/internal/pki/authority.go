// Package pki makes the certificates and keys of a cluster that lives for
// minutes on one machine.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime is long enough that nobody meets an expired certificate in a
// cluster they left running, and below the 825 days above which some clients
// refuse a serving certificate.
const lifetime = 365 * 24 * time.Hour

// Pair is a certificate and its private key, both PEM encoded.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// authority signs certificates.
type authority struct {
	Pair

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
	}
	pair, certificate, key, err := sign(template, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority %s: %w", name, err)
	}
	return &authority{Pair: pair, certificate: certificate, key: key}, nil
}

// client makes a certificate for a client whose user name and groups are
// read from the subject by the API server.
func (a *authority) client(user string, groups ...string) (Pair, error) {
	pair, _, _, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("making the client certificate of %s: %w", user, err)
	}
	return pair, nil
}

// server makes a serving certificate. It is valid for clients too, because
// etcd is a client of its own gRPC endpoint.
func (a *authority) server(name string, dnsNames []string, addresses []net.IP) (Pair, error) {
	pair, _, _, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dnsNames,
		IPAddresses: addresses,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("making the serving certificate of %s: %w", name, err)
	}
	return pair, nil
}

// sign completes the template and signs it; without a parent the certificate
// signs itself.
func sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (Pair, *x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, nil, nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial
	// Clocks of virtual machines jump back when they are corrected; an hour
	// keeps the certificates valid through that.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(lifetime)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return Pair{}, nil, nil, fmt.Errorf("signing the certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, nil, nil, fmt.Errorf("reading back the certificate: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, nil, nil, err
	}
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return Pair{Certificate: certificatePEM, Key: keyPEM}, certificate, key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
