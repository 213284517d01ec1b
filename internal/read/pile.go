package read

// placed knows its place in a pile, counted from one; zero where it is in none.
type placed struct{ at int }

func (p *placed) place() *int { return &p.at }

// pile is a heap from which what is in it can be taken out anywhere, because it knows its place.
type pile[T interface{ place() *int }] struct {
	all  []T
	less func(a, b T) bool
}

// Len is explained at heap.Interface, and so are the others.
func (p *pile[T]) Len() int { return len(p.all) }

// Less compares two.
func (p *pile[T]) Less(i, j int) bool { return p.less(p.all[i], p.all[j]) }

// Swap exchanges two.
func (p *pile[T]) Swap(i, j int) {
	p.all[i], p.all[j] = p.all[j], p.all[i]
	*p.all[i].place(), *p.all[j].place() = i+1, j+1
}

// Push adds one.
func (p *pile[T]) Push(x any) {
	added, _ := x.(T) // Nothing else is added.
	p.all = append(p.all, added)
	*added.place() = len(p.all)
}

// Pop takes the last one.
func (p *pile[T]) Pop() any {
	last := len(p.all) - 1
	taken := p.all[last]
	clear(p.all[last:])
	p.all = p.all[:last]
	*taken.place() = 0

	return taken
}
