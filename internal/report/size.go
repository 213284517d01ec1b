package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

const (
	// maxObject is what etcd takes for one object, less what the API server adds to it with the next writes.
	maxObject = 1536<<10 - 32<<10
	// maxStatus bounds a status, and maxDetails everything in it but the members that are listed.
	maxStatus  = 512 << 10
	maxDetails = 320 << 10
	// step keeps what is cut the same while the object grows and shrinks by a little, as it does with each write.
	step = 16 << 10
	// maxMessage bounds the message of a condition: the names in it may be of any length. The API server accepts four times as many
	// at most.
	maxMessage = 8 << 10
	// leastStatus is for what must be reported in any case, and leastMessage what is left of a message there.
	leastStatus  = 2 << 10
	leastMessage = 512
	// perValue is what a value of a list takes besides itself.
	perValue = len(`"",`)
)

// StatusLimit is how large the status of an object may be. An author decides how large the rest is, up to what etcd takes; a
// status that does not fit could never be written, and nobody would ever learn why.
func StatusLimit(obj client.Object, spec any) int {
	room := maxObject

	for _, part := range []any{spec, obj.GetAnnotations(), obj.GetLabels(), obj.GetManagedFields(), obj.GetOwnerReferences()} {
		if text, err := json.Marshal(part); err == nil {
			room -= len(text)
		}
	}

	return max(0, min(room/step*step, maxStatus))
}

// Cut makes a status fit into a limit. The conditions stay, and of each list what comes first. A field beside the list of
// members says how many there are; for the other lists, the condition about them does.
func Cut(status *operatorv1.NamespaceScopeStatus, room int) {
	room = max(room, leastStatus)
	all := status.ValidatedMembers

	cutMessages(status.Conditions, maxMessage)

	details := min(maxDetails, room/2)
	status.UnprojectedRoles = first(status.UnprojectedRoles, details/2)
	status.FailedMembers = firstFailed(status.FailedMembers, details/4)

	status.FinishingMembers, status.FinishingSince = firstFinishing(status, details/8)

	for _, list := range []*[]string{
		&status.InjectedWorkloads, &status.ManagedCSVList, &status.PatchedCSVList, &status.ManagedWebhookList,
		&status.PatchedWebhookList,
	} {
		*list = first(*list, details/20)
	}

	status.ValidatedMembers, status.ValidatedMembersTotal = nil, 0

	left := room - size(status)
	if left < 0 {
		cutMessages(status.Conditions, leastMessage)
		left = room - size(status)
	}

	// One of them at least: the watch list of a scope that reports none is taken for one that was there before Ambit.
	status.ValidatedMembers = first(all, max(left-step/16, 0))
	if len(status.ValidatedMembers) == 0 && len(all) > 0 {
		status.ValidatedMembers = all[:1]
	}

	if listed := len(status.ValidatedMembers); listed < len(all) {
		status.ValidatedMembersTotal = int64(len(all))

		if c := meta.FindStatusCondition(status.Conditions, ConditionReady); c != nil {
			c.Message = shortened(c.Message, maxMessage/2) +
				fmt.Sprintf("; status.validatedMembers has the first %d of %d, because an object has no room for more", listed, len(all))
		}
	}
}

func cutMessages(conditions []metav1.Condition, limit int) {
	for i := range conditions {
		conditions[i].Message = shortened(conditions[i].Message, limit)
	}
}

// shortened cuts a text to a number of bytes, at the end of a character.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

// first are the values of a list that come first and take no more than some bytes.
func first(values []string, limit int) []string {
	for i := range values {
		if limit -= len(values[i]) + perValue; limit < 0 {
			return values[:i:i]
		}
	}

	return values
}

func firstFailed(failed []operatorv1.FailedMember, limit int) []operatorv1.FailedMember {
	failed = failed[:min(len(failed), maxFailedMembers)]

	for i := range failed {
		failed[i].Message = shortened(failed[i].Message, maxMessage/4)

		if limit -= size(&failed[i]); limit < 0 {
			return failed[:i:i]
		}
	}

	return failed
}

func size(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}

	return len(text)
}
