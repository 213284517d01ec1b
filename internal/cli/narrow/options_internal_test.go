package narrow

import "testing"

// TestWhatLabelsOfMembersAre: whoever gives a selector with sets is told what to give instead.
func TestWhatLabelsOfMembersAre(t *testing.T) {
	t.Parallel()

	n, err := (&Options{as: "scope", memberLabels: []string{"team=a", "stage=b"}}).narrowing()
	if err != nil || len(n.MemberLabels) != 2 || n.MemberLabels["stage"] != "b" {
		t.Errorf("got %v, %v", n, err)
	}

	_, err = (&Options{as: "scope", memberLabels: []string{"team in (a)"}}).narrowing()
	if want := "--member-labels: invalid selector: [team in (a)]; give KEY=VALUE, with commas between several"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	_, err = (&Options{as: "scope", memberLabels: []string{"team=a", "team=b"}}).narrowing()
	if want := "--member-labels: a key is there twice, and a namespace has one value of each"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
