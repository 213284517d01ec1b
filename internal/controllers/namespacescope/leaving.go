package namespacescope

import "time"

// stillLeaving says since when permissions are to be revoked in namespaces that left, given what was remembered before. That
// serves as a bound only: the cluster decides what is to be done, and after a restart the time begins again.
func stillLeaving(before map[string]time.Time, namespaces []string, now time.Time) map[string]time.Time {
	after := make(map[string]time.Time, len(namespaces))

	for _, namespace := range namespaces {
		if at, known := before[namespace]; known {
			after[namespace] = at
		} else {
			after[namespace] = now
		}
	}

	return after
}
