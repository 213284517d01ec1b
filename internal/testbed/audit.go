package testbed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/embedded"
)

// Ambit is the user that Ambit runs as.
const Ambit = "system:serviceaccount:" + embedded.Namespace + ":" + embedded.ServiceAccount

// maxLine is how long a line of the audit log may be.
const maxLine = 1 << 24

// Request is what the API server noted in its audit log of a request that it answered.
type Request struct {
	Verb     string    `json:"verb"`
	Stage    string    `json:"stage"`
	Received time.Time `json:"requestReceivedTimestamp"`
	User     user      `json:"user"`
	// As is whom the user acted as.
	As     user   `json:"impersonatedUser"`
	Object object `json:"objectRef"`
}

type user struct {
	Name string `json:"username"`
}

type object struct {
	APIGroup    string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// String names the request for people.
func (r *Request) String() string {
	o := &r.Object

	return fmt.Sprintf("%s %s.%s/%s %s/%s as %q", r.Verb, o.Resource, o.APIGroup, o.Subresource, o.Namespace, o.Name, r.As.Name)
}

// Requests returns what Ambit asked of the API server so far, as whomever.
func (w *World) Requests() []Request {
	w.Helper()

	log, err := os.Open(w.AuditLog)
	if err != nil {
		w.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // It was only read.

	var out []Request

	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLine)

	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			continue // The last line may be half written.
		}

		if r.Stage == "ResponseComplete" && r.User.Name == Ambit {
			out = append(out, r)
		}
	}

	return out
}

// Rest waits until Ambit asks for nothing any more, and counts what it had asked for since a moment, by "verb resource". Watches,
// events and leases go on for ever and are left out, and so are the resources that are named besides.
func (w *World) Rest(since time.Time, besides ...string) map[string]int {
	w.Helper()

	before := map[string]int{"": -1}

	for range 30 {
		time.Sleep(time.Second)

		now := w.count(since, besides)
		if maps.Equal(before, now) {
			return now
		}

		before = now
	}

	w.Fatalf("it does not come to rest: %v", before)

	return nil
}

func (w *World) count(since time.Time, besides []string) map[string]int {
	w.Helper()

	besides = append([]string{"events", "leases", "selfsubjectreviews"}, besides...)

	return w.Count(since, func(r *Request) bool { return !slices.Contains(besides, r.Object.Resource) })
}

// Count counts what Ambit has asked for since a moment, by "verb resource": what the function wants counted, without watches.
func (w *World) Count(since time.Time, wanted func(*Request) bool) map[string]int {
	w.Helper()

	counts := map[string]int{}
	requests := w.Requests()

	for i := range requests {
		if r := &requests[i]; !r.Received.Before(since) && r.Verb != "watch" && wanted(r) {
			counts[strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")]++
		}
	}

	return counts
}
