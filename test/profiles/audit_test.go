package profiles_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
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

// entry is a line of the API server's audit log.
type entry struct {
	Received         time.Time `json:"requestReceivedTimestamp"`
	User             user      `json:"user"`
	ImpersonatedUser user      `json:"impersonatedUser"`
	Authentication   struct {
		Constraint string `json:"impersonationConstraint"`
	} `json:"authenticationMetadata"`
	Verb   string `json:"verb"`
	URI    string `json:"requestURI"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

type user struct {
	Name string `json:"username"`
}

// readLog reads an audit log to which the API server may be writing.
func readLog(of *embedded.Cluster) ([]request, error) {
	log, err := of.OpenAuditLog()
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // It was only read.

	var out []request

	for lines := json.NewDecoder(log); ; {
		var e entry

		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out, nil
		}

		if err != nil {
			return nil, err
		}

		out = append(out, e.request())
	}
}

func (e *entry) request() request {
	r := request{
		at: e.Received, user: e.User.Name, actingAs: e.ImpersonatedUser.Name, constraint: e.Authentication.Constraint,
		verb: e.Verb, group: e.Object.Group, resource: e.Object.Resource,
		namespace: e.Object.Namespace, name: e.Object.Name, uri: e.URI,
		made:         e.Response.Code == http.StatusCreated,
		refused:      e.Response.Code == http.StatusForbidden,
		unauthorized: e.Annotations["authorization.k8s.io/decision"] == "forbid",
		message:      e.Response.Message,
	}
	if e.Object.Subresource != "" {
		r.resource += "/" + e.Object.Subresource
	}

	return r
}
