// Package servingcert makes the certificates with which the webhooks of operators answer, and says when one has to be made
// again. It is pure: what there is comes from the Secret, and the time from the caller.
package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	// Life is how long a certificate is good for.
	Life = 365 * 24 * time.Hour
	// renewWithin is the last part of Life, in which a certificate is replaced. An outage of Ambit may last as long.
	renewWithin = Life / 3
	// skew is how far the clock of an API server may be behind.
	skew = time.Hour
	// maxAuthorities is how many authorities are trusted at once: the newest, and the one before it, with whose certificate pods may
	// answer until they have loaded the new one.
	maxAuthorities = 2

	organization = "ambit"
	serialBits   = 120
)

// Pair is a certificate with its key, and the authorities that API servers trust when they call, the newest first; all as PEM.
type Pair struct{ Certificate, Key, Authorities []byte }

// ErrUnfit is why a pair cannot be used any more, or not for these hosts.
var ErrUnfit = errors.New("the serving certificate is of no use")

// Make returns a new pair for hosts. The key of its authority is thrown away: nobody can make another certificate that API
// servers would trust. The authority that was trusted before stays so until it expires; before may be nil.
func Make(hosts []string, now time.Time, before *Pair) (*Pair, error) {
	authority, authorityKey, err := sign(&x509.Certificate{
		Subject: pkix.Name{Organization: []string{organization}, CommonName: "authority of " + hosts[0]},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		// Whoever trusts this authority trusts it for these hosts only.
		PermittedDNSDomains: hosts, PermittedDNSDomainsCritical: true,
	}, now, nil, nil)
	if err != nil {
		return nil, err
	}

	certificate, key, err := sign(&x509.Certificate{
		Subject: pkix.Name{Organization: []string{organization}, CommonName: hosts[0]}, DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now, authority, authorityKey)
	if err != nil {
		return nil, err
	}

	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}

	return &Pair{
		Certificate: encode("CERTIFICATE", certificate.Raw), Key: encode("PRIVATE KEY", encoded),
		Authorities: authorities(authority, before, now),
	}, nil
}

func sign(
	template *x509.Certificate, now time.Time, by *x509.Certificate, with *ecdsa.PrivateKey,
) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}

	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}

	template.SerialNumber, template.NotBefore, template.NotAfter = serial, now.Add(-skew), now.Add(Life)
	if by == nil {
		by, with = template, key
	}

	raw, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), with)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}

	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a certificate that was just made: %w", err)
	}

	return signed, key, nil
}

func encode(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// authorities are the newest one, and of those before it as many as are still valid, up to maxAuthorities in all.
func authorities(newest *x509.Certificate, before *Pair, now time.Time) []byte {
	out := encode("CERTIFICATE", newest.Raw)
	if before == nil {
		return out
	}

	count := 1

	for _, c := range parse(before.Authorities) {
		if count < maxAuthorities && c.IsCA && now.Before(c.NotAfter) {
			out = append(out, encode("CERTIFICATE", c.Raw)...)
			count++
		}
	}

	return out
}

func parse(text []byte) []*x509.Certificate {
	var out []*x509.Certificate

	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}

	return out
}

// Check says why a pair is of no use for hosts now, with ErrUnfit. One that is about to expire is of no use, either.
func (p *Pair) Check(hosts []string, now time.Time) error {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}

	known := parse(p.Authorities)
	if len(known) == 0 || len(known) > maxAuthorities {
		return fmt.Errorf("%w: %d authorities vouch for it", ErrUnfit, len(known))
	}

	roots := x509.NewCertPool()
	roots.AddCert(known[0])

	for _, host := range hosts {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{
			DNSName: host, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnfit, err)
		}
	}

	if !now.Before(renewAt(pair.Leaf)) {
		return fmt.Errorf("%w: it ends %s", ErrUnfit, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}

	return nil
}

// RenewAt is when a pair is made again; the zero time when it cannot be read.
func (p *Pair) RenewAt() time.Time {
	if known := parse(p.Certificate); len(known) > 0 {
		return renewAt(known[0])
	}

	return time.Time{}
}

func renewAt(c *x509.Certificate) time.Time { return c.NotAfter.Add(-renewWithin) }

// Newest is a hash of the newest authority. It changes when pods have to take in another certificate.
func (p *Pair) Newest() string {
	first, _ := pem.Decode(p.Authorities)
	if first == nil {
		return ""
	}

	sum := sha256.Sum256(first.Bytes)

	return hex.EncodeToString(sum[:])
}
