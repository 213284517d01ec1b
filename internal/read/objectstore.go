package read

import (
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectStore records what a watch reports of a few objects. put takes one in and drop takes one out; forget makes room for a
// whole list. All of them are called by locked, which says to others that something has changed.
type objectStore struct {
	locked    func(change func())
	forget    func()
	put, drop func(client.Object)
	// trim, if given, says what the reflector keeps of an object while it gathers the first list.
	trim cache.TransformFunc
}

// Transformer is asked for by the reflector.
func (s *objectStore) Transformer() cache.TransformFunc { return s.trim }

// Add stores an object that was created.
func (s *objectStore) Add(obj any) error { return s.edit(obj, s.put) }

// Update stores an object that was changed.
func (s *objectStore) Update(obj any) error { return s.edit(obj, s.put) }

// Delete takes out an object that was deleted.
func (s *objectStore) Delete(obj any) error { return s.edit(obj, s.drop) }

// Replace stores all objects.
func (s *objectStore) Replace(objs []any, _ string) error {
	s.locked(func() {
		s.forget()

		for _, obj := range objs {
			if o, ok := obj.(client.Object); ok {
				s.put(o)
			}
		}
	})

	return nil
}

// Resync does nothing: nothing here is done at intervals.
func (*objectStore) Resync() error { return nil }

func (s *objectStore) edit(obj any, edit func(client.Object)) error {
	o, ok := obj.(client.Object)
	if !ok {
		return noObject(obj)
	}

	s.locked(func() { edit(o) })

	return nil
}
