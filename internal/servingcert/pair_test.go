package servingcert_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/servingcert"
)

const host = "op-service.own.svc"

func hosts() []string { return []string{host, "op-service.own"} }

func make1(t *testing.T, now time.Time, before *servingcert.Pair) *servingcert.Pair {
	t.Helper()

	p, err := servingcert.Make(hosts(), now, before)
	if err != nil {
		t.Fatal(err)
	}

	return p
}

func TestCheck(t *testing.T) {
	now := time.Now()
	good, other := make1(t, now, nil), make1(t, now, nil)

	for name, c := range map[string]struct {
		pair   servingcert.Pair
		hosts  []string
		at     time.Time
		fits   bool
		reason string
	}{
		"new":       {pair: *good, hosts: hosts(), at: now, fits: true, reason: "nothing is wrong with it"},
		"half-way":  {pair: *good, hosts: hosts(), at: now.Add(servingcert.Life / 2), fits: true, reason: "it lasts long enough"},
		"last days": {pair: *good, hosts: hosts(), at: now.Add(servingcert.Life * 3 / 4), reason: "it is renewed before it ends"},
		"over":      {pair: *good, hosts: hosts(), at: now.Add(2 * servingcert.Life), reason: "it has ended"},
		"early":     {pair: *good, hosts: hosts(), at: now.Add(-24 * time.Hour), reason: "it has not begun"},
		"elsewhere": {pair: *good, hosts: []string{"op-service.other.svc"}, at: now, reason: "it is for another Service"},
		"key of another": {
			pair:  servingcert.Pair{Certificate: good.Certificate, Key: other.Key, Authorities: good.Authorities},
			hosts: hosts(), at: now, reason: "nobody could answer with it",
		},
		"authority of another": {
			pair:  servingcert.Pair{Certificate: good.Certificate, Key: good.Key, Authorities: other.Authorities},
			hosts: hosts(), at: now, reason: "API servers would not trust it",
		},
		"authority of somebody else before": {
			pair: servingcert.Pair{
				Certificate: good.Certificate, Key: good.Key,
				Authorities: append(bytes.Clone(other.Authorities), good.Authorities...),
			},
			hosts: hosts(), at: now, reason: "the newest has to vouch for it",
		},
		"many authorities": {
			pair: servingcert.Pair{
				Certificate: good.Certificate, Key: good.Key, Authorities: bytes.Repeat(good.Authorities, 3),
			},
			hosts: hosts(), at: now, reason: "whatever is put there would be trusted",
		},
		"nothing": {hosts: hosts(), at: now, reason: "there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.pair.Check(c.hosts, c.at)
			if c.fits != (err == nil) || err != nil && !errors.Is(err, servingcert.ErrUnfit) {
				t.Errorf("fits is %t, because %s; got %v", c.fits, c.reason, err)
			}
		})
	}
}

// TestRenewal: at every moment of a renewal, whoever trusts what is written trusts what pods answer with, before they have taken
// in the new certificate and after.
func TestRenewal(t *testing.T) {
	now := time.Now()
	first := make1(t, now.Add(-time.Hour), nil)
	second := make1(t, now, first)
	third := make1(t, now, second)

	answers(t, first, second.Authorities, true)
	answers(t, second, second.Authorities, true)
	answers(t, second, first.Authorities, false)
	answers(t, first, third.Authorities, false)

	if first.Newest() == second.Newest() || first.Newest() == "" {
		t.Error("pods would not be told of the new one")
	}

	if late := make1(t, now.Add(2*servingcert.Life), first); len(late.Authorities) > len(first.Authorities)+8 {
		t.Error("an authority that has ended vouches still")
	}
}

func answers(t *testing.T, serving *servingcert.Pair, trusted []byte, want bool) {
	t.Helper()

	pair, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	server.Config.ErrorLog = nil
	server.StartTLS()

	defer server.Close()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)

	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS13,
	}}}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}

	response, err := caller.Do(request)
	if err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}

	if want != (err == nil) {
		t.Errorf("trusted is %t: %v", want, err)
	}
}
