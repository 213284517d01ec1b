package profiles_test

import (
	"net/http"
	"time"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// ambit is the user that the manager authenticates as.
const ambit = testbed.Ambit

// request is what somebody asked the API server for.
type request struct {
	at time.Time
	// user asked; actingAs is who that user acted as, if anybody.
	user, actingAs string
	// constraint is the way of acting as somebody; empty for the one without limits.
	constraint string
	verb       string
	group      string
	// resource has its subresource behind a slash. It is empty for what is no resource, such as discovery.
	resource        string
	namespace, name string
	uri             string
	// made says that it made something.
	made bool
	// refused says that it was forbidden, unauthorized that no role allows it; else it was refused for what it asked for.
	refused, unauthorized bool
	message               string
}

func (r *request) String() string {
	who := ""
	if r.actingAs != "" {
		who = " as " + r.actingAs
	}

	return r.verb + " " + r.uri + who + ": " + r.message
}

// readLog reads the audit log to which the API server may be writing.
func readLog(of *testbed.Bed) ([]request, error) {
	answered, err := of.Answered()
	out := make([]request, len(answered))

	for i := range answered {
		out[i] = requestOf(&answered[i])
	}

	return out, err
}

func requestOf(e *testbed.Request) request {
	r := request{
		at: e.Received, user: e.User.Name, actingAs: e.As.Name, constraint: e.How.Constraint,
		verb: e.Verb, group: e.Object.APIGroup, resource: e.Object.Resource,
		namespace: e.Object.Namespace, name: e.Object.Name, uri: e.URI,
		made:         e.Response.Code == http.StatusCreated,
		refused:      e.Response.Code == http.StatusForbidden,
		unauthorized: e.Notes.Decision == "forbid",
		message:      e.Response.Message,
	}
	if e.Object.Subresource != "" {
		r.resource += "/" + e.Object.Subresource
	}

	return r
}
