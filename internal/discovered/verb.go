package discovered

import (
	"regexp"
	"slices"
	"strings"
)

// verbs are those of requests, and those that Kubernetes asks about besides (kubernetes.io/docs/reference/access-authn-authz,
// "request verbs").
//
//nolint:gochecknoglobals // It never changes.
var verbs = strings.Fields("* get list watch create update patch delete deletecollection " +
	"use bind escalate impersonate approve sign attest")

// constrained are the verbs of impersonation that is limited to some requests.
var constrained = regexp.MustCompile(`^impersonate(-on)?:[a-z-]+(:[a-z]+)?$`)

// VerbNote says that Kubernetes has no such verb: an answer is then about a word in rules, and "nobody" may mean that the word is
// misspelled. It is empty where there is nothing to say.
func VerbNote(verb string) string {
	if slices.Contains(verbs, verb) || constrained.MatchString(verb) {
		return ""
	}

	return "Kubernetes itself knows no verb " + verb + ", so the answer is about rules that name it; " +
		"verbs are in lower case, and each takes a question of its own"
}
