package facts

import "time"

// ConfigMap is a ConfigMap of the operator namespace.
type ConfigMap struct {
	// List is the value of the key "namespaces"; HasList says whether the key is there.
	List    string
	HasList bool
	// Immutable ConfigMaps cannot be written.
	Immutable bool
	// OtherKeys says that it holds more than the list.
	OtherKeys bool
	// Created says, by annotation, that Ambit made it, and so may delete it.
	Created bool
	// ListHash is Ambit's annotation for the list.
	ListHash string
	// Generation is Ambit's annotation that counts the changes of the list; 0 where it is missing.
	Generation int64
	// Since is Ambit's annotation that the list is older than the last write; zero where it is missing.
	Since time.Time
	// Before is Ambit's annotation of the change before the latest one; zero where it is missing.
	Before time.Time
	// Applied is when the API server last recorded a change by Ambit, in whole seconds; zero when never.
	Applied time.Time
	// Written is when the API server last recorded a change by somebody who wrote the list, in whole seconds. The list is at
	// least as old. Zero where that is not recorded.
	Written time.Time
	// Held says that it does not go when it is deleted, because of its finalizers; Terminating that it was deleted.
	Held, Terminating bool
	// Version is its resource version; ListVersion that with which its present list was first seen.
	Version, ListVersion uint64
}

// Ours says whether Ambit has written to it.
func (c *ConfigMap) Ours() bool { return c.ListHash != "" || !c.Applied.IsZero() }

// IsLeft says whether it was deleted and only waits for its finalizers, with no list in it that could be taken back.
func (c *ConfigMap) IsLeft() bool { return c.Terminating && (!c.HasList || c.Immutable) }

// ChangedAt is when the list got its present value, by the API server's clock. A write that only repairs the list moves
// Applied but not this, so what says that it was later was written by somebody else.
func (c *ConfigMap) ChangedAt() time.Time {
	if !c.Since.IsZero() && !c.Since.After(c.Applied) {
		return c.Since
	}

	return c.Applied
}
