package read

import (
	"cmp"
	"container/heap"
	"reflect"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// allowance bounds what is remembered of one kind in one namespace: whoever may write there decides how much that is. The largest
// objects are left out first, so that whoever adds large ones keeps out their own and not those of others, and so that what is
// left out does not depend on the order in which they come.
type allowance struct {
	mu          sync.Mutex
	limit, used int
	entries     map[types.NamespacedName]*entry
	// kept are those that are remembered, the largest first, and left those that are left out, the smallest first.
	kept, left pile[*entry]
	// forgot says that more are left out than left has room for.
	forgot bool
}

// maxLeft bounds the names of what is left out.
const maxLeft = 1_000

type entry struct {
	placed

	key    types.NamespacedName
	weight int
	// out says that it is left out.
	out bool
	// leave is called when it is left out after it was kept.
	leave func()
}

func newAllowance(limit int) *allowance {
	less := func(a, b *entry) bool {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.key.Name, b.key.Name)) < 0
	}

	return &allowance{
		limit: limit, entries: map[types.NamespacedName]*entry{}, left: pile[*entry]{less: less},
		kept: pile[*entry]{less: func(a, b *entry) bool { return !less(a, b) }},
	}
}

// add notes an object, and leaves out the largest ones while there are too many. It says whether there is room for this one.
func (a *allowance) add(key types.NamespacedName, weight int, leave func()) bool {
	is, left := a.note(key, weight, leave)
	for _, leave := range left {
		leave()
	}

	return is
}

// addUnlessSmall is add, but for what is so small that it counts for nothing. leave is called also where there is no room for
// the object itself.
func (a *allowance) addUnlessSmall(key types.NamespacedName, weight, small int, leave func()) {
	if weight <= small {
		a.free(key)
	} else if !a.add(key, weight, leave) {
		leave()
	}
}

func (a *allowance) note(key types.NamespacedName, weight int, leave func()) (is bool, left []func()) {
	a.mu.Lock()
	defer a.mu.Unlock()

	e := a.put(key, weight, leave)

	for a.used > a.limit {
		over, _ := heap.Pop(&a.kept).(*entry) // Nothing else is in it.
		a.used -= over.weight
		over.out = true

		if heap.Push(&a.left, over); over != e {
			left = append(left, over.leave)
		}

		over.leave = nil
	}

	// The last one of a heap is never its first, so what would fit before all others stays known.
	for a.left.Len() > maxLeft {
		over, _ := heap.Remove(&a.left, a.left.Len()-1).(*entry)
		delete(a.entries, over.key)

		a.forgot = true
	}

	return !e.out, left
}

// addIfRoom notes an object if there is room for it beside what is kept, and leaves out nothing else for it. leave is called
// when it is left out after all. It says whether it is kept, as everything is that is read once, without an allowance.
func (a *allowance) addIfRoom(key types.NamespacedName, weight int, leave func()) bool {
	if a == nil {
		return true
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	used := a.used
	if e := a.entries[key]; e != nil && !e.out {
		used -= e.weight
	}

	if used+weight > a.limit {
		return false
	}

	a.put(key, weight, leave)

	return true
}

// put keeps an object, whether there is room for it or not.
func (a *allowance) put(key types.NamespacedName, weight int, leave func()) *entry {
	a.remove(key)

	e := &entry{key: key, weight: weight, leave: leave}
	a.entries[key] = e
	a.used += weight
	heap.Push(&a.kept, e)

	return e
}

// namesOut are the names of what is left out, and whether there are more than are known. What is read once, for a plan, has no
// allowance.
func (a *allowance) namesOut() (names map[string]struct{}, more bool) {
	if a == nil {
		return nil, false
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	names = make(map[string]struct{}, a.left.Len())
	for _, e := range a.left.all {
		names[e.key.Name] = struct{}{}
	}

	return names, a.forgot
}

// free forgets an object.
func (a *allowance) free(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(key)
}

// keep forgets all objects but those that are there.
func (a *allowance) keep(there map[types.NamespacedName]struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()

	for key := range a.entries {
		if _, is := there[key]; !is {
			a.remove(key)
		}
	}
}

func (a *allowance) remove(key types.NamespacedName) {
	e, known := a.entries[key]
	if !known {
		return
	}

	delete(a.entries, key)

	if e.out {
		heap.Remove(&a.left, e.at-1)

		return
	}

	heap.Remove(&a.kept, e.at-1)
	a.used -= e.weight
}

// leftOut counts what is left out, up to one more than maxLeft, and says whether there is room now for some of it.
func (a *allowance) leftOut() (count int, room bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if count = a.left.Len(); count > 0 {
		room = a.used+a.left.all[0].weight <= a.limit
	}

	if a.forgot {
		return maxLeft + 1, room || count == 0
	}

	return count, room
}

// Weight is about how many bytes of memory a record takes.
func Weight(record any) int {
	const row = 200 // Its key, its version, and the places in the tables.

	v := reflect.ValueOf(record)

	return row + int(v.Type().Size()) + behind(v)
}

// weighRules is what the rules of a Role count for. They stand for more rights than they have words, and are compared right by
// right, so each counts for the memory that this takes. Rules that stand for more than are compared never fit.
func weighRules(rules []rbacv1.PolicyRule) int {
	const right = 64

	count := rights.Count(rules)
	if count > rights.Max {
		return Weight(rules) + allowanceOf
	}

	return Weight(rules) + right*count
}

// weighCSV is what a ClusterServiceVersion counts for. A plan keeps more of each package that its annotation names than the name.
func weighCSV(csv facts.CSV) int {
	const perPackage = 256

	return Weight(csv) + perPackage*strings.Count(csv.ManagedOperators, ",")
}

// behind is what a value refers to, in bytes, besides the value itself.
func behind(v reflect.Value) int {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Slice:
		sum := v.Len() * int(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return sum
		}

		for i := range v.Len() {
			sum += behind(v.Index(i))
		}

		return sum
	case reflect.Map:
		sum := 0
		for each := v.MapRange(); each.Next(); {
			sum += 2*int(v.Type().Key().Size()+v.Type().Elem().Size()) + behind(each.Key()) + behind(each.Value())
		}

		return sum
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0 // Its zone is that of many.
		}

		sum := 0
		for _, field := range v.Fields() {
			sum += behind(field)
		}

		return sum
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}

		return int(v.Elem().Type().Size()) + behind(v.Elem())
	default:
		return 0
	}
}
