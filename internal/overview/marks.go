package overview

// Mark is how a state looks in pictures. The sign alone is enough, so that colours are not needed.
type Mark struct {
	State State  `json:"state"`
	Sign  string `json:"sign"`
	Word  string `json:"word"`
}

// Marks returns the marks of all states, in the order of a legend.
func Marks() []Mark {
	return []Mark{
		{OwnNamespace, "◆", "its own namespace"}, {Served, "●", "served"}, {Idle, "○", "member, but nothing is projected"},
		{Partial, "◐", "misses something"}, {Failed, "✗", "not served"}, {Unknown, "?", "unknown"},
	}
}

// NoMember returns the mark for a namespace in which an operator has no state.
func NoMember() Mark { return Mark{"", "·", "not a member"} }

// MarkOf returns the mark of a state; without a state, it is NoMember.
func MarkOf(s State) Mark {
	for _, m := range Marks() {
		if m.State == s {
			return m
		}
	}

	return NoMember()
}
