package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/devcluster/internal/apiclient"
)

const (
	// prefix begins all keys of Kubernetes, and last is the first key after
	// them.
	prefix, last = "/registry/", "/registry0"

	// page is how many keys are read at once; a page with values has fewer, as
	// definitions of custom kinds have half a megabyte each.
	page, pageOfValues = 5000, 100

	// batch is how many operations etcd takes in one transaction.
	batch = 128
)

// Client speaks etcd's API in JSON, which etcd serves beside gRPC. A client of
// its own kind would make this small program as slow to build as etcd.
type Client struct{ http *apiclient.Client }

// NewClient makes a client for an etcd that http reaches.
func NewClient(http *apiclient.Client) *Client { return &Client{http: http} }

// The messages of etcd's API. Numbers of 64 bits are strings there.
type (
	keyValue struct {
		Key      []byte `json:"key"`
		Value    []byte `json:"value,omitempty"`
		Revision int64  `json:"mod_revision,string"`
	}
	rangeRequest struct {
		Key      []byte `json:"key"`
		End      []byte `json:"range_end,omitempty"`
		Limit    int64  `json:"limit,string"`
		KeysOnly bool   `json:"keys_only"`
	}
	rangeResponse struct {
		Entries []keyValue `json:"kvs"`
		More    bool       `json:"more"`
	}
	putRequest struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	deleteRequest struct {
		Key []byte `json:"key"`
	}
	operation struct {
		Put    *putRequest    `json:"request_put,omitempty"`
		Delete *deleteRequest `json:"request_delete_range,omitempty"`
	}
	txnRequest struct {
		Success []operation `json:"success"`
	}
	txnResponse struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
)

// list returns what is stored, by key; without values if only keys are wanted.
func (c *Client) list(ctx context.Context, keysOnly bool) (map[string]entry, error) {
	out := map[string]entry{}
	ask := rangeRequest{Key: []byte(prefix), End: []byte(last), Limit: pageOfValues, KeysOnly: keysOnly}
	if keysOnly {
		ask.Limit = page
	}
	for {
		var answer rangeResponse
		if err := c.http.Post(ctx, "/v3/kv/range", ask, &answer); err != nil {
			return nil, fmt.Errorf("listing keys: %w", err)
		}
		for _, e := range answer.Entries {
			out[string(e.Key)] = entry{value: e.Value, revision: e.Revision}
		}
		if !answer.More || len(answer.Entries) == 0 {
			return out, nil
		}
		// The smallest key that comes after the last one.
		ask.Key = slices.Concat(answer.Entries[len(answer.Entries)-1].Key, []byte{0})
	}
}

// get returns what is stored under a key; nothing if there is none.
func (c *Client) get(ctx context.Context, key string) (entry, error) {
	var answer rangeResponse
	if err := c.http.Post(ctx, "/v3/kv/range", rangeRequest{Key: []byte(key)}, &answer); err != nil {
		return entry{}, fmt.Errorf("reading a key: %w", err)
	}
	if len(answer.Entries) == 0 {
		return entry{}, nil
	}
	return entry{value: answer.Entries[0].Value, revision: answer.Entries[0].Revision}, nil
}

// delete removes keys. Those of one kind go one after the other: Kubernetes
// takes it that each change of a kind has a revision of its own. A client whose
// watch ends within a revision, as it does when too much happens at once, goes
// on after it, and would believe in the rest of what was deleted for good.
func (c *Client) delete(ctx context.Context, keys []string) error {
	for _, round := range rounds(keys) {
		var ask txnRequest
		for _, key := range round {
			ask.Success = append(ask.Success, operation{Delete: &deleteRequest{Key: []byte(key)}})
		}
		if _, err := c.commit(ctx, ask); err != nil {
			return err
		}
	}
	return nil
}

// rounds parts keys so that each part has at most one of a kind, and no more
// than etcd takes at once. What follows the prefix is a kind, or an API group.
func rounds(keys []string) [][]string {
	var out [][]string
	next := map[string]int{} // by kind
	for _, key := range slices.Sorted(slices.Values(keys)) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		n := next[kind]
		for n < len(out) && len(out[n]) == batch {
			n++
		}
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], key)
		next[kind] = n + 1
	}
	return out
}

// put writes keys and returns at which revision each was written. Each has a
// transaction of its own: some are as large as a transaction may be.
func (c *Client) put(ctx context.Context, values map[string][]byte) (map[string]int64, error) {
	revisions := map[string]int64{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		revision, err := c.commit(ctx, txnRequest{Success: []operation{
			{Put: &putRequest{Key: []byte(key), Value: values[key]}},
		}})
		if err != nil {
			return nil, err
		}
		revisions[key] = revision
	}
	return revisions, nil
}

func (c *Client) commit(ctx context.Context, ask txnRequest) (int64, error) {
	var answer txnResponse
	if err := c.http.Post(ctx, "/v3/kv/txn", ask, &answer); err != nil {
		return 0, fmt.Errorf("writing keys: %w", err)
	}
	return answer.Header.Revision, nil
}
