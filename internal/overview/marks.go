package overview

// Mark is how a state looks in pictures; the sign says it without a colour.
type Mark struct {
	State State  `json:"state"`
	Sign  string `json:"sign"`
	Word  string `json:"word"`
}

// Marks are those of all states, in the order of a legend.
func Marks() []Mark {
	return []Mark{
		{OwnNamespace, "◆", "its own namespace"}, {Served, "●", "served"}, {Idle, "○", "member, but nothing is projected"},
		{Partial, "◐", "misses something"}, {Failed, "✗", "not served"}, {Unknown, "?", "unknown"},
	}
}

// NoMember is that of a namespace in which an operator has no state.
func NoMember() Mark { return Mark{"", "·", "not a member"} }

// MarkOf is that of a state, or that of none.
func MarkOf(s State) Mark {
	for _, m := range Marks() {
		if m.State == s {
			return m
		}
	}

	return NoMember()
}
