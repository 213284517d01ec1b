package collect_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/ambit-k8s/ambit/internal/collect"
)

func TestListsAreMadeFromLists(t *testing.T) {
	t.Parallel()

	list := []int{1, 2, 3}

	if got := collect.Map(list, strconv.Itoa); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("Map returned %v", got)
	}

	if got := collect.Map([]int(nil), strconv.Itoa); got == nil || len(got) > 0 {
		t.Errorf("Map returned %#v for no list; want an empty one, which JSON writes as a list", got)
	}

	isOdd := func(n int) bool { return n%2 == 1 }

	if got := collect.Filter(list, isOdd); !slices.Equal(got, []int{1, 3}) || !slices.Equal(list, []int{1, 2, 3}) {
		t.Errorf("Filter returned %v, and left %v", got, list)
	}

	if got := collect.Filter([]int{2}, isOdd); got != nil {
		t.Errorf("Filter returned %#v where nothing is so; want nil", got)
	}

	if got := collect.Count(list, isOdd); got != 2 {
		t.Errorf("Count returned %d; want 2", got)
	}

	if *collect.Pointers(list)[1] = 5; list[1] != 5 {
		t.Errorf("Pointers led elsewhere: %v", list)
	}
}
