package read

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// Whatever the order in which objects come, the same of them are left out: the largest.
func TestTheLargestAreLeftOutWhateverTheOrder(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 0))

	for round := range 200 {
		sizes := map[string]int{}
		for i := range 1 + random.IntN(20) {
			sizes[strconv.Itoa(i)] = 1 + 50*i + random.IntN(50) // No two are alike.
		}

		limit := 1 + random.IntN(3000)

		var want []string

		for range 5 {
			a, kept := newAllowance(limit), map[string]struct{}{}

			names := slices.Collect(keysOf(sizes))
			random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })

			for _, name := range names {
				kept[name] = struct{}{}
				if !a.add(named(name), sizes[name], func() { delete(kept, name) }) {
					delete(kept, name)
				}
			}

			got, sum := slices.Sorted(keysOf(kept)), 0
			for _, name := range got {
				sum += sizes[name]
			}

			if left, room := a.leftOut(); sum > limit || sum != a.used || len(got)+left != len(sizes) || room {
				t.Fatalf("round %d: %d of %d bytes are used, %d are said to be; %d are left out of %d; there is room: %t",
					round, sum, limit, a.used, left, len(sizes), room)
			}

			if want == nil {
				want = append([]string{""}, got...)
			}

			if !slices.Equal(want[1:], got) {
				t.Fatalf("round %d: %v are kept, and in another order %v", round, want[1:], got)
			}
		}
	}
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// What went makes room for what was left out, if that fits, and not before.
func TestRoomIsReportedOnceThereIsSome(t *testing.T) {
	t.Parallel()

	a := newAllowance(100)
	for _, o := range []struct {
		name string
		size int
		fits bool
	}{{"a", 40, true}, {"b", 50, true}, {"c", 60, false}, {"d", 5, true}} {
		if fits := a.add(named(o.name), o.size, nil); fits != o.fits {
			t.Errorf("%s fits: %t", o.name, fits)
		}
	}

	if a.free(named("d")); room(a) {
		t.Error("there is said to be room for c beside a and b")
	}

	if a.free(named("b")); !room(a) {
		t.Error("there is said to be no room for c beside a")
	}

	a.keep(map[types.NamespacedName]struct{}{named("a"): {}})

	if left, _ := a.leftOut(); left != 0 || room(a) {
		t.Errorf("%d are left out", left)
	}

	if a.free(named("a")); a.used != 0 {
		t.Errorf("%d bytes are used", a.used)
	}
}

// Of any number of objects that are left out, the names of some are remembered, and that there are more.
func TestNamesOfWhatIsLeftOutAreBounded(t *testing.T) {
	t.Parallel()

	a := newAllowance(20)
	a.add(named("kept"), 11, nil)

	for i := range 3 * maxLeft {
		a.add(named(strconv.Itoa(i)), 12+i%7, nil)
	}

	if left, _ := a.leftOut(); len(a.entries) != maxLeft+1 || left != maxLeft+1 || room(a) {
		t.Fatalf("%d names are remembered, %d are said to be left out, and there is room: %t", len(a.entries), left, room(a))
	}

	if a.free(named("kept")); !room(a) {
		t.Error("there is said to be no room for the smallest one")
	}

	// Nobody knows whether those whose names were forgotten are there.
	if a.keep(nil); !room(a) {
		t.Error("what may be left out is not to be looked for")
	}
}

func room(a *allowance) bool {
	_, is := a.leftOut()

	return is
}

// Many small values take a multiple of their text.
func TestWeightCountsWhatIsBehind(t *testing.T) {
	t.Parallel()

	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, Resources: []string{"pods"}}}
	small := Weight(rules)

	for range 999 {
		rules = append(rules, rules[0])
	}

	if got := Weight(rules); got < 100*1000 || got < 100*small/2 {
		t.Errorf("1000 rules weigh %d, one %d", got, small)
	}

	if got := Weight(map[string]string{"k": string(make([]byte, 5000))}); got < 5000 {
		t.Errorf("a long value weighs %d", got)
	}

	if got := Weight((*string)(nil)); got > 1000 {
		t.Errorf("nothing weighs %d", got)
	}
}

// What is noted only if there is room leaves out nothing else, and counts once.
func TestWhatIsTakenIfThereIsRoomLeavesOutNothing(t *testing.T) {
	t.Parallel()

	a := newAllowance(20)

	for _, o := range []struct {
		name string
		size int
		is   bool
		used int
	}{
		{"a", 12, true, 12}, {"b", 9, false, 12}, {"a", 20, true, 20}, {"a", 21, false, 20}, {"a", 5, true, 5}, {"b", 15, true, 20},
	} {
		if is := a.addIfRoom(named(o.name), o.size, func() { t.Errorf("%s is left out", o.name) }); is != o.is || a.used != o.used {
			t.Errorf("%s of %d is taken: %t, and %d bytes are used", o.name, o.size, is, a.used)
		}
	}

	left := ""

	a = newAllowance(20)
	a.addIfRoom(named("a"), 12, func() { left += "a" })

	if a.add(named("b"), 9, nil); left != "a" {
		t.Error("the larger one is not left out when another comes")
	}

	if names, more := a.namesOut(); len(names) != 1 || more {
		t.Errorf("left out are %v, and more: %t", names, more)
	} else if _, is := names["a"]; !is {
		t.Errorf("left out are %v", names)
	}

	if a.free(named("b")); !a.addIfRoom(named("a"), 12, nil) {
		t.Error("what was left out is not taken once there is room")
	}

	if names, _ := a.namesOut(); len(names) != 0 || a.used != 12 {
		t.Errorf("left out are %v, and %d bytes are used", names, a.used)
	}
}

// TestRulesCountByWhatTheyStandFor: a Role of three short lists stands for more rights than can be compared, and never fits; of
// those that may be compared, a namespace has room for a hundred thousand rights.
func TestRulesCountByWhatTheyStandFor(t *testing.T) {
	t.Parallel()

	list := func(n int, word string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = word + strconv.Itoa(i)
		}

		return out
	}
	rules := func(n int) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: list(1, "g"), Resources: list(100, "r"), Verbs: list(n, "v")}}
	}

	a := newAllowance(allowanceOf)

	if a.add(named("more"), weighRules(rules(101)), func() {}) {
		t.Error("a Role of 10,100 rights fits")
	}

	for i := range 8 {
		if !a.add(named(strconv.Itoa(i)), weighRules(rules(100)), func() {}) {
			t.Errorf("%d Roles of 10,000 rights fit", i)
		}
	}

	if _, room := a.leftOut(); room {
		t.Error("there is room for what never fits")
	}

	if a.add(named("last"), weighRules(rules(100)), func() {}) && a.add(named("least"), weighRules(rules(100)), func() {}) {
		t.Error("more than 100,000 rights fit")
	}
}
