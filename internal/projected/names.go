package projected

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// KeySize is the number of bytes in the key of Names.
const KeySize = 32

// The end of a name is 64 bits, encrypted: when it was given, and for which reconcile key.
const (
	suffixDigits = 16
	tagBits      = 28
	tagMask      = 1<<tagBits - 1
	tickBits     = 64 - tagBits
	// tick is the step of the clock in a name. 36 bits of it last until 2060.
	tick = 16 * time.Millisecond
	// rounds of a Feistel network: four make a strong permutation (Luby and Rackoff, 1988); twice as many cost nothing here.
	rounds = 8
	// half of a block is 32 bits.
	half = 32
	// maxPrefix leaves room for the end in the 63 characters that every kind of name allows.
	maxPrefix = 63 - suffixDigits
	// skew is how far ahead the clock may have been that gave a name: as far as one that takes its local time for UTC, and more. A
	// copy with a name from the future would be nobody's until then.
	skew = 25 * time.Hour
	// early is how much earlier than the key a name may have been given.
	early = time.Hour
)

// epoch is before the first name was given.
func epoch() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// ErrKey is returned for a key of the wrong size.
var ErrKey = errors.New("the key of names needs 32 bytes")

// Names gives names to copies. A name is the name of the source, shortened, and 16 hexadecimal digits. Nobody can predict
// these without the key, they never come twice, and by them Ambit knows its own objects although somebody took every mark from
// them. A name that could be predicted would let a tenant bind it before the Role is there.
//
// The digits are an encrypted time, so no state is needed to never give one again, and a tag of the reconcile key that the
// copy is for. Whoever makes names up hits the tag of one of 1,000 keys once in 250,000 tries, and needs a plausible time
// besides.
type Names struct {
	// sum is that of the key.
	sum   [sha256.Size]byte
	block cipher.Block
	since time.Time
	now   func() time.Time
	// scratches holds what names are worked out on. A hash with a key costs more to prepare than to use, and every object that is
	// written is named once and read a few times.
	scratches sync.Pool

	mu     sync.Mutex
	latest uint64
	given  map[[sha256.Size]byte]struct{}
}

// NewNames returns the names of a key. since is when the key was made: what is older was named otherwise.
func NewNames(key []byte, since time.Time) (*Names, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("%w, and has %d", ErrKey, len(key))
	}

	mac, encrypt := derive(key, "mac"), derive(key, "encrypt")

	block, err := aes.NewCipher(encrypt)
	if err != nil {
		return nil, fmt.Errorf("preparing the key of names: %w", err)
	}

	return &Names{
		sum: sha256.Sum256(key), block: block, since: since, now: time.Now, given: map[[sha256.Size]byte]struct{}{},
		scratches: sync.Pool{New: func() any { return &scratch{mac: hmac.New(sha256.New, mac)} }},
	}, nil
}

// scratch is room for one name, for one goroutine at a time.
type scratch struct {
	mac   hash.Hash
	text  []byte
	sum   [sha256.Size]byte
	block [aes.BlockSize]byte
}

// of is the keyed hash of texts, with a zero byte between them.
func (s *scratch) of(texts ...string) [sha256.Size]byte {
	s.text = s.text[:0]

	for i, text := range texts {
		if i > 0 {
			s.text = append(s.text, 0)
		}

		s.text = append(s.text, text...)
	}

	s.mac.Reset()
	s.mac.Write(s.text)
	s.mac.Sum(s.sum[:0])

	return s.sum
}

// scratch returns one that is to be put back.
func (n *Names) scratch() *scratch {
	s, _ := n.scratches.Get().(*scratch) // The pool holds nothing else.

	return s
}

func derive(key []byte, use string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(use))

	return h.Sum(nil)
}

// HasKey says whether the names are those of a key.
func (n *Names) HasKey(key []byte) bool { return sha256.Sum256(key) == n.sum }

// Since is when the key was made.
func (n *Names) Since() time.Time { return n.since }

// New returns a name for an object in a slot that nothing ever had.
func (n *Names) New(kind Kind, namespace string, reconcileKey scope.Key, slot string) string {
	prefix := Prefix(kind, slot)
	tag := n.Tag(reconcileKey)

	s := n.scratch()
	defer n.scratches.Put(s)

	tweak := s.tweak(kind, namespace, prefix)
	value := n.encrypt(s, &tweak, n.tickOf(&tweak)<<tagBits|uint64(tag))

	var raw [8]byte

	binary.BigEndian.PutUint64(raw[:], value)

	return prefix + hex.EncodeToString(raw[:])
}

// tickOf is the present step of the clock, or the next that was not used for the same name.
func (n *Names) tickOf(tweak *[sha256.Size]byte) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()

	now := uint64(max(0, n.present().Sub(epoch()))/tick) & (1<<tickBits - 1)
	if now > n.latest {
		n.latest = now
		clear(n.given)
	}

	if _, used := n.given[*tweak]; used {
		n.latest++
		clear(n.given)
	}

	n.given[*tweak] = struct{}{}

	return n.latest
}

// Tag stands for a reconcile key in names.
func (n *Names) Tag(reconcileKey scope.Key) uint32 {
	s := n.scratch()
	defer n.scratches.Put(s)

	sum := s.of("home", reconcileKey.String())

	return binary.BigEndian.Uint32(sum[:]) & tagMask
}

// TagOf returns the tag in a name; ok says that it may be one that Ambit gave.
func (n *Names) TagOf(kind Kind, namespace, name string) (tag uint32, ok bool) {
	tag, at, ok := n.read(kind, namespace, name)

	// Names that are given in bursts may be ahead of the clock.
	return tag, ok && !at.Before(n.since.Add(-early)) && !at.After(n.present().Add(skew))
}

// present is now. The key was made before, by the API server's clock, whatever the clock of this machine says.
func (n *Names) present() time.Time {
	if now := n.now(); now.After(n.since) {
		return now
	}

	return n.since
}

// TagIn returns what would be the tag in a name if Ambit gave it; ok says that the name is of that form. It does not depend on
// the clock, so that an object is found again under the same tag.
func (n *Names) TagIn(kind Kind, namespace, name string) (tag uint32, ok bool) {
	tag, _, ok = n.read(kind, namespace, name)

	return tag, ok
}

// read returns the tag in a name, and when the name was given.
func (n *Names) read(kind Kind, namespace, name string) (tag uint32, at time.Time, ok bool) {
	if len(name) < suffixDigits {
		return 0, at, false
	}

	prefix, digits := name[:len(name)-suffixDigits], name[len(name)-suffixDigits:]
	if strings.ToLower(digits) != digits {
		return 0, at, false
	}

	var raw [8]byte
	if _, err := hex.Decode(raw[:], []byte(digits)); err != nil {
		return 0, at, false
	}

	s := n.scratch()
	defer n.scratches.Put(s)

	tweak := s.tweak(kind, namespace, prefix)
	value := n.decrypt(s, &tweak, binary.BigEndian.Uint64(raw[:]))

	return uint32(value & tagMask), epoch().Add(time.Duration(value>>tagBits) * tick), true
}

func (s *scratch) tweak(kind Kind, namespace, prefix string) [sha256.Size]byte {
	return s.of("name", string(kind), namespace, prefix)
}

func (n *Names) encrypt(s *scratch, tweak *[sha256.Size]byte, value uint64) uint64 {
	left, right := uint32(value>>half), uint32(value) //nolint:gosec // G115: the halves of the block.
	for i := range rounds {
		left, right = right, left^n.round(s, tweak, byte(i), right)
	}

	return uint64(left)<<half | uint64(right)
}

func (n *Names) decrypt(s *scratch, tweak *[sha256.Size]byte, value uint64) uint64 {
	left, right := uint32(value>>half), uint32(value) //nolint:gosec // G115: the halves of the block.
	for i := rounds - 1; i >= 0; i-- {
		left, right = right^n.round(s, tweak, byte(i), left), left
	}

	return uint64(left)<<half | uint64(right)
}

func (n *Names) round(s *scratch, tweak *[sha256.Size]byte, i byte, right uint32) uint32 {
	block := s.block[:]

	copy(block, tweak[:aes.BlockSize-5])
	block[aes.BlockSize-5] = i
	binary.BigEndian.PutUint32(block[aes.BlockSize-4:], right)
	n.block.Encrypt(block, block)

	return binary.BigEndian.Uint32(block)
}

// Prefix is how the names of the objects in a slot begin: as the slot does, without its digits.
func Prefix(kind Kind, slot string) string {
	prefix := slot[:max(0, len(slot)-digits)]

	// The ClusterRole of a ScopeTemplate keeps the whole of its generateName.
	if kind == ClusterRole || len(prefix) <= maxPrefix {
		return prefix
	}

	prefix = prefix[:maxPrefix-1]
	for !utf8.ValidString(prefix) {
		prefix = prefix[:len(prefix)-1]
	}

	return prefix + "-"
}
