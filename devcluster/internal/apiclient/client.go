// Package apiclient asks an API server the few questions that starting a
// cluster takes. The real client library would make this small program as
// slow to build as Kubernetes itself.
package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/pki"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// ErrNotFound says that the object asked for does not exist.
var ErrNotFound = errors.New("not found")

// Client talks to one server.
type Client struct {
	base string
	http *http.Client
}

// New makes a client for HTTPS that trusts one authority and shows one
// certificate.
func New(base string, authority []byte, client pki.Pair) (*Client, error) {
	certificate, err := tls.X509KeyPair(client.Certificate, client.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("the certificate of the authority is not valid")
	}
	return newClient(base, &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:      roots,
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
	}}), nil
}

// NewLocal makes a client for HTTP by a socket of this machine.
func NewLocal(socket string) *Client {
	return newClient("http://localhost", &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	})
}

func newClient(base string, transport *http.Transport) *Client {
	// A connection that is kept would hide that the server behind it was
	// replaced.
	transport.DisableKeepAlives = true
	return &Client{base: base, http: &http.Client{Timeout: time.Minute, Transport: transport}}
}

// Get fetches a path; anything but 200 is an error which quotes the answer.
// The answer is decoded unless there is nothing to decode it into.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, into)
}

// Post posts an object, or a question, and decodes the answer unless there is
// nothing to decode it into. An object that exists already is left as it is.
func (c *Client) Post(ctx context.Context, path string, content, answer any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding what is posted to %s: %w", path, err)
	}
	return c.do(ctx, http.MethodPost, path, body, answer)
}

// Delete deletes what is at a path: an object, or all that a list shows.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, nil, nil)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making a request for %s: %w", path, err)
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer to %s: %w", path, err)
	}
	switch {
	case method == http.MethodPost && response.StatusCode == http.StatusConflict:
		return nil
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, ErrNotFound)
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s answered %s: %.300s", path, response.Status, bytes.TrimSpace(answer))
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("decoding the answer to %s: %w", path, err)
	}
	return nil
}
